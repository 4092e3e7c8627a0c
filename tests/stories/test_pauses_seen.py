"""What looks at a group from outside, and its pauses."""

from datetime import timedelta

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.admin import pause_group
from eventproc.autoscaling.reader import read_group
from eventproc.cli.dashboard.reader import GroupReader
from eventproc.cli.group.connection import Connection
from eventproc.models import OwnershipClaim
from tests.stories.scene import Scene

EXPIRATION = timedelta(seconds=60)


async def test_what_looks_at_a_group_sees_its_pauses():
    """The autoscaler counts no backlog of it, and the page has the reason."""
    scene = Scene(partition_count=2)
    for p in "01":
        scene.publish(3, p)
    source = scene.make_source()
    async with MemoryCheckpointStore(scene.account) as store, source:
        await store.claim_ownership(
            scene.group,
            [OwnershipClaim(partition_id=p, owner_id=None, expected_etag=None) for p in "01"],
        )
        await pause_group(store, scene.group, ["1"], reason="INC-1", expiration=EXPIRATION)
        read = await read_group(
            store, scene.group, source, expiration=EXPIRATION, clock=lambda: 0.0
        )
        connection = Connection(group=scene.group, store=store, source=source)
        reader = GroupReader(connection, expiration=EXPIRATION, clock=lambda: 0.0)
        seen = (await reader.read(())).partition_by_id

    assert {p: found.backlog for p, found in read.partitions.items()} == {"0": 3, "1": 0}
    assert seen["0"].pause is None
    assert seen["1"].pause is not None
    assert seen["1"].pause.reason == "INC-1"

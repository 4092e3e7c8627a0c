"""What looks at a group from outside sees its pauses, and that its hub was created again."""

from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._command.dashboard.reader import GroupReader
from eventproc._command.group.connection import Connection
from eventproc._group.autoscaler import read_group
from eventproc.admin import pause_group
from eventproc.models import CheckpointUpdate, OwnershipClaim
from tests.scenarios.group_setup import Setup

EXPIRATION = timedelta(seconds=60)


def page_of(setup, store, source):
    """Return what reads the group for the page."""
    connection = Connection(group=setup.group, store=store, source=source)
    return GroupReader(connection, expiration=EXPIRATION, clock=lambda: 0.0)


async def test_what_looks_at_a_group_sees_its_pauses():
    """The autoscaler counts no backlog of it, and the page has the reason."""
    setup = Setup(partition_count=2)
    for p in "01":
        setup.publish(3, p)
    source = setup.make_source()
    async with MemoryCheckpointStore(setup.account) as store, source:
        await store.claim_ownership(
            setup.group,
            [OwnershipClaim(partition_id=p, owner_id=None, expected_etag=None) for p in "01"],
        )
        await pause_group(store, setup.group, ["1"], reason="INC-1", expiration=EXPIRATION)
        read = await read_group(
            store, setup.group, source, expiration=EXPIRATION, clock=lambda: 0.0
        )
        reader = page_of(setup, store, source)
        seen = (await reader.read(())).partition_by_id

    assert {p: found.backlog for p, found in read.partitions.items()} == {"0": 3, "1": 0}
    assert seen["0"].pause is None
    assert seen["1"].pause is not None
    assert seen["1"].pause.reason == "INC-1"


async def test_the_page_does_not_know_a_lag_while_the_hub_does_not_answer():
    """The last one may have grown meanwhile."""
    setup = Setup()
    setup.publish(3)
    source = setup.make_source()
    async with MemoryCheckpointStore(setup.account) as store, source:
        reader = page_of(setup, store, source)
        before = (await reader.read(())).partition_by_id["0"].end
        setup.hub.begin_outage()
        during = (await reader.read(())).partition_by_id["0"].end
        setup.hub.end_outage()
        after = (await reader.read(())).partition_by_id["0"].end

    assert [None if end is None else end.lag for end in (before, during, after)] == [3, None, 3]


@pytest.mark.real_time
async def test_the_autoscaler_counts_all_events_of_a_hub_that_was_created_again():
    """The checkpoint is of the former hub, whether the new one is shorter or longer."""
    setup = Setup(partition_count=2)
    for p in "01":
        setup.publish(3, p)
    source = setup.make_source()
    async with MemoryCheckpointStore(setup.account) as store, source:
        for p in "01":
            update = CheckpointUpdate(
                partition_id=p, offset="o", sequence_number=2, replaces=None, writer="a"
            )
            await store.update_checkpoint(setup.group, update)
        before = await read_group(
            store, setup.group, source, expiration=EXPIRATION, clock=lambda: 0.0
        )
        setup.hub.recreate()
        setup.publish(2, "0")
        setup.publish(9, "1")
        after = await read_group(
            store, setup.group, source, expiration=EXPIRATION, clock=lambda: 1.0
        )

    assert {p: found.backlog for p, found in before.partitions.items()} == {"0": 0, "1": 0}
    assert {p: found.backlog for p, found in after.partitions.items()} == {"0": 2, "1": 9}


async def test_the_page_compares_a_checkpoint_only_with_an_end_of_the_same_reading():
    """Beside an older one, a partition that goes on seems to be of another hub."""
    setup = Setup()
    setup.publish(3)
    source = setup.make_source()
    async with MemoryCheckpointStore(setup.account) as store, source:
        reader = page_of(setup, store, source)
        await reader.read(())
        setup.publish(9)
        update = CheckpointUpdate(
            partition_id="0", offset="o", sequence_number=11, replaces=None, writer="a"
        )
        await store.update_checkpoint(setup.group, update)
        setup.hub.begin_outage()
        during = (await reader.read(())).partition_by_id["0"].error
        setup.hub.end_outage()
        after = (await reader.read(())).partition_by_id["0"].error

    assert (during, after) == (None, None)


@pytest.mark.real_time
async def test_the_page_sees_that_a_hub_was_created_again_though_it_is_longer_by_now():
    setup = Setup()
    setup.publish(3)
    source = setup.make_source()
    async with MemoryCheckpointStore(setup.account) as store, source:
        update = CheckpointUpdate(
            partition_id="0", offset="o", sequence_number=2, replaces=None, writer="a"
        )
        await store.update_checkpoint(setup.group, update)
        setup.hub.recreate()
        setup.publish(9)
        seen = await page_of(setup, store, source).read(())
        (partition,) = seen.partitions

    assert "is older than the hub" in (partition.error or "")
    assert partition.end is not None
    assert partition.end.lag == 9

"""A store that tells of changes: processors do not wait for their next poll."""

import asyncio
from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig
from eventproc.models import GroupRecord
from eventproc.ports import ForwardingStore
from tests.scenarios.group_setup import Noting, Setup, seconds

REBALANCE_S = 10.0
STABLE_AFTER_S = 0.8 * REBALANCE_S


class TellingStore(ForwardingStore):
    """Tells of each change of members, owners and group records."""

    tells_changes = True

    async def watch(self, group, owner_id, changed):
        """Compare the records again and again."""
        seen = None
        while True:
            members = await self.store.list_members(group)
            owned = await self.store.list_ownership(group)
            now = (
                {(m.owner_id, m.status) for m in members.members},
                {(o.partition_id, o.owner_id) for o in owned.ownerships},
                dict(members.record_etags),
            )
            if now != seen:
                seen = now
                changed()
            await asyncio.sleep(0.1)


def processor(setup, owner_id):
    """Return a processor that polls rarely."""
    return EventProcessor(
        source=setup.make_source(),
        store=TellingStore(MemoryCheckpointStore(setup.account)),
        handler=lambda: Noting(setup),
        owner_id=owner_id,
        config=EventProcessorConfig(
            uses_store_thread=False,
            load_balancing_interval=timedelta(seconds=100),
            rebalance_interval=timedelta(seconds=REBALANCE_S),
            ownership_expiration=timedelta(seconds=600),
        ),
    )


@pytest.mark.parametrize("notices_at_s", [(), (1.0,), (2.0, 7.5)])
async def test_a_joiner_gets_its_share_as_soon_as_the_members_have_been_the_same_for_long_enough(
    notices_at_s,
):
    """Notices of something else meanwhile do not prolong the wait."""
    setup = Setup(partition_count=2)
    async with processor(setup, "a"):
        await seconds(40)
        async with processor(setup, "b"):
            loop = asyncio.get_running_loop()
            begun_s = loop.time()
            for number, at_s in enumerate(notices_at_s):
                await seconds(begun_s + at_s - loop.time())
                record = GroupRecord(name=f"n{number}", content=b"")
                async with MemoryCheckpointStore(setup.account) as store:
                    await store.write_record(setup.group, record)
            while "b" not in setup.owners().values():
                await seconds(0.1)
            found = loop.time() - begun_s

    assert STABLE_AFTER_S - 0.1 <= found <= STABLE_AFTER_S + 0.6

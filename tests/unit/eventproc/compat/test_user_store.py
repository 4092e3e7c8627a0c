"""A store with Azure's four methods, as a store of a processor."""

import asyncio
from datetime import UTC, datetime

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.compat._user_store import OwnedAlone, UserStore
from eventproc.models import ConsumerGroup, OwnershipClaim, WriteOutcome
from tests.integration.compat.sides import AioOwnStore

GROUP = ConsumerGroup(fully_qualified_namespace="n", eventhub_name="h")


async def test_a_claim_that_was_won_keeps_its_epoch():
    """The program's store has none. By it a call knows whether its own lease is still held."""
    claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None, epoch=7)
    async with UserStore(AioOwnStore(), asyncio.get_running_loop()) as store:
        (won,) = await store.claim_ownership(GROUP, [claim])
        (lost,) = await store.claim_ownership(GROUP, [claim])

    assert won.ownership is not None
    assert (won.outcome, won.ownership.epoch) == (WriteOutcome.WON, 7)
    assert lost.outcome is WriteOutcome.LOST


async def test_times_may_be_seconds_or_datetimes_and_a_record_without_a_position_is_none():
    """As in stores for older releases of Azure's client."""
    own, at = AioOwnStore(), datetime(2026, 1, 1, tzinfo=UTC)
    times = {"0": at, "1": at.timestamp(), "2": None}
    own.owned.update({p: {"partition_id": p, "last_modified_time": t} for p, t in times.items()})
    own.checkpoints.update(
        {
            "0": {"partition_id": "0", "offset": "70", "sequence_number": 7},
            "1": {"partition_id": "1", "offset": None, "sequence_number": None},
        }
    )
    async with UserStore(own, asyncio.get_running_loop()) as store:
        owned = (await store.list_ownership(GROUP)).by_partition
        found = await store.list_checkpoints(GROUP)

    never = datetime.fromtimestamp(0, UTC)
    assert {p: each.last_modified for p, each in owned.items()} == {"0": at, "1": at, "2": never}
    assert [(each.partition_id, each.offset) for each in found] == [("0", "70")]


async def test_a_store_of_which_only_checkpoints_are_used_is_opened_and_closed():
    """Else a program that receives from one partition again and again leaks connections."""

    class Noting(MemoryCheckpointStore):
        is_open = False

        async def open(self):
            self.is_open = True

        async def close(self):
            self.is_open = False

    store = Noting()
    async with OwnedAlone(store):
        was_open = store.is_open

    assert (was_open, store.is_open) == (True, False)

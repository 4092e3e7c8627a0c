"""A store with Azure's four methods, as a store of a processor."""

import asyncio

from eventproc.compat._user_store import UserStore
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

"""Stores and their transactions in a second event loop."""

import asyncio
from datetime import timedelta

from eventproc.models import ConsumerGroup
from tests.scenarios.loops import in_two_loops

GROUP = ConsumerGroup(fully_qualified_namespace="a.servicebus.windows.net", eventhub_name="orders")


async def test_a_store_that_was_closed_can_be_opened_in_another_event_loop(store_kind):
    """As a processor does that is started again, with calls that wait for each other."""
    async with store_kind() as kind:
        store = kind.make_store()
        transactions = store.transactions()

        async def begin():
            async with transactions.begin(is_blocking=False, idle_max=timedelta(seconds=60)):
                await asyncio.sleep(0)

        async def use():
            async with store:
                await asyncio.gather(*(store.list_ownership(GROUP) for _ in range(50)))
                if transactions is not None:
                    async with transactions:
                        await asyncio.gather(*(begin() for _ in range(12)))

        await in_two_loops(use)

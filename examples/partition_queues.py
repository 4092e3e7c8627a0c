"""Keyed orders on RabbitMQ's partition queues, shared by two processors: each customer's in order.

The first argument is the broker's URL: python examples/partition_queues.py amqp://guest:guest@localhost
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import product

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import EventProcessor, PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.sources.rabbitmq import QueuePublisher, RabbitQueues

ORDERS = 20
by_customer: dict[tuple[str, str | None], list[int]] = defaultdict(list)
handled = asyncio.Semaphore(0)


class Orders(PartitionHandler):
    """Notes the orders of each customer, and from which queue they came."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Messages are acknowledged after a checkpoint, which is written when this returned."""
        for event in events:
            by_customer[context.partition_id, event.partition_key].append(int(event.body))
            handled.release()


async def publish(url: str) -> None:
    """Publish orders of three customers; each is confirmed before the next one is sent."""
    async with QueuePublisher(url, prefix="OrderEvents", count=12) as publisher:
        for number, customer in product(range(ORDERS), ("anna", "ben", "cleo")):
            await publisher.publish(b"%d" % number, key=customer)


async def main(url: str) -> None:
    """Publish, and process with two processors."""
    account = MemoryAccount()
    one, other = (
        EventProcessor(
            source=RabbitQueues(url, prefix="OrderEvents", count=12),
            store=MemoryCheckpointStore(account),
            handler=Orders,
            owner_id=f"consumer-{ordinal}",
        )
        for ordinal in range(2)
    )
    async with one, other:
        await publish(url)
        for _ in range(3 * ORDERS):
            await handled.acquire()
    print(list(by_customer.values()).count(list(range(ORDERS))), "customers, all orders in order")


asyncio.run(main(sys.argv[1]))

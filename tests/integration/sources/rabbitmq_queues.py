"""Partition queues of a real RabbitMQ broker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel

from eventproc.sources.rabbitmq import QueueOptions, QueuePublisher, RabbitQueues
from eventproc.testing import SourceBench
from tests.servers.rabbitmq_broker import RabbitMqBroker

_numbers = count()


class Queues(SourceBench):
    """The queues of one prefix, and a bench for the contract of sources."""

    def __init__(self, broker: RabbitMqBroker, count: int = 3) -> None:
        """Declare nothing yet."""
        self.broker = broker
        self.prefix = f"Orders{next(_numbers)}"
        self.count = count

    def source(self, **options: Any) -> RabbitQueues:
        """Return an unopened source."""
        return RabbitQueues(
            self.broker.url, prefix=self.prefix, count=self.count, options=QueueOptions(**options)
        )

    def publisher(self, **arguments: Any) -> QueuePublisher:
        """Return an unopened publisher."""
        return QueuePublisher(self.broker.url, prefix=self.prefix, count=self.count, **arguments)

    def queue(self, partition_id: str | int) -> str:
        """Return the name of a partition's queue."""
        return f"{self.prefix}-P{partition_id}"

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[AbstractChannel]:
        """Yield a channel of a client of its own."""
        async with await aio_pika.connect(self.broker.url) as connection:
            yield await connection.channel()

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        """Publish messages to one queue, in order, and wait until the broker has them."""
        async with self.publisher(), self.channel() as channel:
            for body in bodies:
                await channel.default_exchange.publish(
                    aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT),
                    self.queue(partition_id),
                )

    async def declare(self) -> None:
        """Declare the queues, as a publisher or a processor does at its start."""
        async with self.publisher():
            pass

    async def left(self) -> int:
        """Return how many messages are in the queues that no consumer has."""
        async with self.channel() as channel:
            queues = [
                await channel.declare_queue(self.queue(number), passive=True)
                for number in range(self.count)
            ]
        return sum(queue.declaration_result.message_count or 0 for queue in queues)

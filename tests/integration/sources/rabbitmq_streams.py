"""Streams of a real RabbitMQ broker, to which AMQP 0.9.1 clients publish."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel

from eventproc.errors import SourceError, SourceRejectedError
from eventproc.ports import EventSource
from eventproc.sources.rabbitmq.streams import RabbitStreams
from tests.integration.sources.processors import Fleet
from tests.servers.rabbitmq_broker import RabbitMqBroker


class SuperStream:
    """A super stream: streams that are bound to an exchange of its name."""

    def __init__(self, broker: RabbitMqBroker, name: str, partitions: int = 3) -> None:
        """Create nothing yet."""
        self.broker = broker
        self.name = name
        self.partitions = partitions

    def source(self, **arguments: Any) -> RabbitStreams:
        """Return an unopened source on the super stream."""
        return RabbitStreams(self.broker.stream_url, stream=self.name, **arguments)

    def stream(self, partition: int | str) -> str:
        """Return the name of a partition's stream."""
        return f"{self.name}-{partition}"

    async def create(self, **arguments: Any) -> None:
        """Declare what is not there yet; the arguments are those of each stream."""
        async with await aio_pika.connect(self.broker.url) as connection:
            channel = await connection.channel()
            for number in range(self.partitions):
                await self._bind(channel, number, arguments)

    async def _bind(self, channel: AbstractChannel, number: int, arguments: dict[str, Any]) -> None:
        exchange = await channel.declare_exchange(
            self.name, "direct", durable=True, arguments={"x-super-stream": True}
        )
        queue = await channel.declare_queue(
            self.stream(number),
            durable=True,
            arguments={"x-queue-type": "stream", **arguments},
        )
        await queue.bind(exchange, str(number), arguments={"x-stream-partition-order": number})

    async def delete(self) -> None:
        """Delete the super stream and its streams."""
        async with await aio_pika.connect(self.broker.url) as connection:
            channel = await connection.channel()
            for number in range(self.partitions):
                await channel.queue_delete(self.stream(number))
            await channel.exchange_delete(self.name)

    async def publish(self, partition: int | str, bodies: Sequence[bytes], **message: Any) -> None:
        """Publish events, in order; return when the broker has confirmed all of them."""
        async with await aio_pika.connect(self.broker.url) as connection:
            channel = await connection.channel()
            for body in bodies:
                await channel.default_exchange.publish(
                    aio_pika.Message(body, **message), self.stream(partition)
                )


class StreamBench:
    """A super stream for the contract of sources."""

    refusal: type[SourceError] = SourceRejectedError
    is_exclusive = False

    def __init__(self, hub: SuperStream) -> None:
        self.hub = hub
        self.published: Counter[str] = Counter()

    def source(self) -> EventSource:
        return self.hub.source()

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        await self.hub.publish(partition_id, bodies)
        self.published[partition_id] += len(bodies)

    async def grow(self) -> None:
        self.hub.partitions += 1
        await self.hub.create()


class StreamFleet(Fleet):
    """Processors on one super stream."""

    async def publish(self, partition, *bodies, **message):
        await self.hub.publish(partition, bodies, **message)

    @property
    def numbers(self):
        return [event.sequence_number for event in self.events]

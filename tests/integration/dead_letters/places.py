"""Places of dead letters: a sink and readers of one place, and how it is damaged."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import aio_pika
from azure.storage.blob import ContainerClient

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import ConsumerGroup, DeadLetter, ReceivedEvent
from eventproc.dead_letters import MemoryDeadLetterReader, MemoryDeadLetterSink
from eventproc.dead_letters.blob import BlobDeadLetterReader, BlobDeadLetterSink
from eventproc.emulator import EventHubsEmulator
from eventproc.models import OutgoingEvent
from eventproc.ports import CheckpointStore, DeadLetterReader, DeadLetterSink
from eventproc.sources.eventhubs import (
    EventHubDeadLetterReader,
    EventHubDeadLetterSink,
    EventHubPublisher,
    EventHubSource,
)
from eventproc.sources.rabbitmq import RabbitDeadLetterReader, RabbitDeadLetterSink
from tests.servers.rabbitmq_broker import RabbitMqBroker

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GROUP = ConsumerGroup(fully_qualified_namespace="NS.example", eventhub_name="Orders")


def letter(number: int, *, partition_id: str = "2", **changes: Any) -> DeadLetter:
    """Return the dead letter of the event with this number; *changes* are of the letter."""
    event = ReceivedEvent(
        body=b"body %d" % number if number % 2 else b"\xff\x00%d" % number,
        sequence_number=number,
        offset=str(1000 + number),
        enqueued_time=NOON + timedelta(seconds=number),
        partition_key=f"key-{number % 3}",
        properties={"kind": "order", "count": number, "raw": b"\xfe\xff", "none": None},
        content_type="text/plain",
        correlation_id="c-1",
        message_id=f"m-{number}",
    )
    fields = {
        "event": event,
        "group": GROUP,
        "partition_id": partition_id,
        "owner_id": "a",
        "attempt_count": 3,
        "error_type": "ValueError",
        "error_message": f"no order {number}",
        "traceback": "Traceback ...",
        "given_up_at": NOON + timedelta(minutes=number),
    }
    return DeadLetter(**{**fields, **changes})


class LetterPlace(ABC):
    """A place of dead letters."""

    is_exclusive = False
    """Whether a reader keeps its letters from other readers."""

    def __init__(self) -> None:
        self._account = MemoryAccount()

    @abstractmethod
    def sink(self) -> DeadLetterSink:
        """Return an unopened sink."""

    @abstractmethod
    def reader(self, store: CheckpointStore) -> DeadLetterReader:
        """Return an unopened reader; *store* is open, and shared by all readers of the place."""

    @abstractmethod
    async def damage(self, raw: bytes) -> None:
        """Store something that is no dead letter."""

    async def store(self, letters: Sequence[DeadLetter]) -> None:
        """Store letters, in this order."""
        sink = self.sink()
        await sink.open()
        for each in letters:
            await sink.store(each)
        await sink.close()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[DeadLetterReader]:
        """Yield an open reader."""
        async with MemoryCheckpointStore(self._account) as store, self.reader(store) as reader:
            yield reader


class MemoryPlace(LetterPlace):
    """A sink in memory; nothing there can be damaged."""

    def __init__(self) -> None:
        super().__init__()
        self._sink = MemoryDeadLetterSink()

    def sink(self) -> DeadLetterSink:
        return self._sink

    def reader(self, store: CheckpointStore) -> DeadLetterReader:
        return MemoryDeadLetterReader(self._sink)

    async def damage(self, raw: bytes) -> None:
        raise NotImplementedError


class BlobPlace(LetterPlace):
    """A container."""

    def __init__(self, storage: str, container: str) -> None:
        super().__init__()
        self.storage, self.container = storage, container

    def sink(self) -> DeadLetterSink:
        return BlobDeadLetterSink.from_connection_string(self.storage, self.container)

    def reader(self, store: CheckpointStore) -> DeadLetterReader:
        return BlobDeadLetterReader.from_connection_string(self.storage, self.container)

    async def damage(self, raw: bytes) -> None:
        with ContainerClient.from_connection_string(self.storage, self.container) as client:
            name = "dead-letters/ns.example/orders/$default/9/0000000000000000001.json"
            client.upload_blob(name, raw)
            client.upload_blob("dead-letters/readme.txt", b"other blobs are left out")


class HubPlace(LetterPlace):
    """A hub of the emulator, and a store that keeps what is removed."""

    def __init__(self, emulator: EventHubsEmulator) -> None:
        super().__init__()
        self.conn_str = emulator.connection_string_for("dead")

    def sink(self) -> DeadLetterSink:
        return EventHubDeadLetterSink.from_connection_string(self.conn_str)

    def reader(self, store: CheckpointStore) -> DeadLetterReader:
        return EventHubDeadLetterReader(
            EventHubSource.from_connection_string(self.conn_str),
            store=store,
        )

    async def damage(self, raw: bytes) -> None:
        async with EventHubPublisher.from_connection_string(self.conn_str) as publisher:
            await publisher.publish([OutgoingEvent(body=raw)], patience=timedelta(seconds=10))


_numbers = count()


class QueuePlace(LetterPlace):
    """A queue, which is declared when it is made."""

    is_exclusive = True

    def __init__(self, broker: RabbitMqBroker, **arguments: Any) -> None:
        super().__init__()
        self.broker = broker
        self.queue = f"letters-{next(_numbers)}"
        self._arguments = arguments

    async def declare(self) -> None:
        """Declare the queue."""
        async with await aio_pika.connect(self.broker.url) as connection:
            channel = await connection.channel()
            await channel.declare_queue(self.queue, durable=True, arguments=self._arguments)

    def sink(self) -> DeadLetterSink:
        return RabbitDeadLetterSink(self.broker.url, routing_key=self.queue)

    def reader(self, store: CheckpointStore) -> DeadLetterReader:
        return RabbitDeadLetterReader(self.broker.url, self.queue)

    async def damage(self, raw: bytes) -> None:
        async with await aio_pika.connect(self.broker.url) as connection:
            channel = await connection.channel()
            await channel.default_exchange.publish(aio_pika.Message(raw), self.queue)

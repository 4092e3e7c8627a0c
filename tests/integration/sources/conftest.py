"""The hubs on which the contract of sources is checked."""

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage

from eventproc.emulator import EventHubsEmulator
from eventproc.errors import SourceRejectedError, SourceUnavailableError
from eventproc.ports import EventSource
from eventproc.sources.capture import CapturedHub
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource, ReceivePath
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing import SourceBench
from tests.integration.sources.kafka_topic import KafkaBench, KafkaTopic
from tests.servers.capture import MemoryCaptureFiles, bare_record_of
from tests.servers.kafka_broker import KafkaBroker

GROUPS = ("$Default", "audit")
PARTITIONS = 3


class MemoryBench(SourceBench):
    """A hub in memory."""

    is_exclusive = True

    def __init__(self) -> None:
        self.hub = MemoryHub(PARTITIONS, consumer_groups=GROUPS)

    def source(self) -> EventSource:
        return MemoryEventSource(self.hub)

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        for body in bodies:
            self.hub.publish(body, partition_id=partition_id)

    async def grow(self) -> bool:
        self.hub.grow(len(self.hub.partition_ids()) + 1)
        return True


class CapturedBench(MemoryBench):
    """A hub in memory that keeps one event of a partition; Capture files have the others."""

    def __init__(self) -> None:
        super().__init__()
        self.files = MemoryCaptureFiles(record_of=bare_record_of)

    def source(self) -> EventSource:
        for partition_id in self.hub.partition_ids():
            end = self.hub.partition_properties(partition_id).last_enqueued_sequence_number
            self.hub.trim(partition_id, before=end)
        return CapturedHub(super().source(), self.files)

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        events = [self.hub.publish(body, partition_id=partition_id)[1] for body in bodies]
        for begin in range(0, len(events), 40):
            self.files.add(partition_id, events[begin : begin + 40], block_bytes=500)


class EventHubsBench(SourceBench):
    """A hub in the emulator; Azure's own client publishes to it."""

    is_exclusive = True

    def __init__(self, emulator: EventHubsEmulator, producer: EventHubProducerClient) -> None:
        self.emulator = emulator
        self.producer = producer
        self.receive_path = ReceivePath.DIRECT

    def read_by(self, path: ReceivePath) -> None:
        """Read in this way; Azure's client does not report that a link was refused."""
        self.receive_path = path
        is_direct = path is ReceivePath.DIRECT
        self.refusal = SourceRejectedError if is_direct else SourceUnavailableError

    def source(self) -> EventSource:
        return EventHubSource.from_connection_string(
            self.emulator.connection_string_for("hub"),
            options=EventHubOptions(receive_path=self.receive_path),
        )

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        await asyncio.to_thread(self._send, partition_id, bodies)

    def _send(self, partition_id: str, bodies: tuple[bytes, ...]) -> None:
        events: list[EventData | AmqpAnnotatedMessage] = [EventData(body) for body in bodies]
        if int(partition_id) < PARTITIONS:
            self.producer.send_batch(events, partition_id=partition_id)
            return
        # Azure's producer asks for the partitions once in its life.
        with EventHubProducerClient.from_connection_string(
            self.emulator.connection_string_for("hub")
        ) as producer:
            producer.send_batch(events, partition_id=partition_id)

    async def grow(self) -> bool:
        await asyncio.to_thread(self.emulator.add_partitions, "hub", 1)
        return True


@pytest.fixture(scope="module", name="event_hubs")
def _event_hubs() -> Iterator[EventHubsBench]:
    """Yield one emulator for all clauses: the first event to a partition takes a second."""
    with (
        EventHubsEmulator({"hub": PARTITIONS}, consumer_groups=GROUPS[1:]) as emulator,
        EventHubProducerClient.from_connection_string(
            emulator.connection_string_for("hub")
        ) as producer,
    ):
        yield EventHubsBench(emulator, producer)


_numbers = count()


@pytest.fixture(name="topic")
def _topic(kafka: KafkaBroker) -> KafkaTopic:
    """Return a topic for one test."""
    return KafkaTopic(kafka, f"topic-{next(_numbers)}")


BENCHES = ("memory", "capture", "kafka", *ReceivePath)


@pytest.fixture(
    name="bench", params=BENCHES, ids=["memory", "capture", "kafka", "direct", "public"]
)
def _bench(request: pytest.FixtureRequest) -> SourceBench:
    if request.param == "memory":
        return MemoryBench()
    if request.param == "capture":
        return CapturedBench()
    if request.param == "kafka":
        return KafkaBench(request.getfixturevalue("topic"))
    bench: EventHubsBench = request.getfixturevalue("event_hubs")
    bench.read_by(request.param)
    return bench

"""A group keeps to one offset format, AMQP's or Kafka's."""

import logging
from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import ConfigurationError, EventProcessor, EventProcessorConfig
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_OFFSET, BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc._core.delivery.offset_format import offset_format_in, offset_format_of
from eventproc._simulation.observer import BEGIN
from eventproc.models import (
    Checkpoint,
    CheckpointUpdate,
    EventPosition,
    LastEnqueued,
    Member,
    OffsetFormat,
    OwnershipClaim,
    ReceivedEvent,
)
from eventproc.ports import PartitionReceiver
from eventproc.sources.memory import MemoryEventSource
from tests.scenarios.group_setup import Noting, Setup, seconds

AMQP, KAFKA = OffsetFormat.AMQP, OffsetFormat.KAFKA


class KafkaReceiver(PartitionReceiver):
    """A receiver of a memory hub whose offsets look like Kafka's."""

    def __init__(self, inner):
        self.inner = inner

    async def receive(self, *, events_max, wait_max):
        events = await self.inner.receive(events_max=events_max, wait_max=wait_max)
        return [
            ReceivedEvent(
                body=event.body,
                sequence_number=event.sequence_number,
                offset=f"kafka:{event.sequence_number}",
                enqueued_time=event.enqueued_time,
            )
            for event in events
        ]

    async def close(self):
        await self.inner.close()

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        newest: LastEnqueued | None = self.inner.last_enqueued
        return newest


class KafkaLikeSource(MemoryEventSource):
    """A memory hub with Kafka's offsets: these rules need no broker."""

    @property
    def offset_format(self):
        return KAFKA

    async def open_receiver(self, consumer_group, partition_id, position):
        if position.offset is not None and position.offset.startswith("kafka:"):
            position = EventPosition.from_sequence_number(int(position.offset[6:]))
        return KafkaReceiver(await super().open_receiver(consumer_group, partition_id, position))


SOURCES = {AMQP: MemoryEventSource, KAFKA: KafkaLikeSource}


def processor_of(setup, offset_format, owner_id):
    """A processor that is not started."""
    return EventProcessor(
        source=SOURCES[offset_format](setup.hub),
        store=MemoryCheckpointStore(setup.account),
        handler=lambda: Noting(setup),
        owner_id=owner_id,
        config=EventProcessorConfig(uses_store_thread=False),
    )


async def serve(setup, offset_format, owner_id, for_s=30.0):
    """Start a processor, let it work, and stop it."""
    async with processor_of(setup, offset_format, owner_id):
        await seconds(for_s)


async def refused(processor):
    """Start a processor that is refused; return the message."""
    with pytest.raises(ConfigurationError) as caught:
        await processor.start()
    return str(caught.value)


@pytest.mark.parametrize(("first", "second"), [(AMQP, KAFKA), (KAFKA, AMQP)])
async def test_another_offset_format_is_refused_while_a_processor_is_alive(first, second):
    """Even if it has not read anything, so that there is no checkpoint."""
    setup = Setup()
    async with processor_of(setup, first, "a"):
        await seconds(200)  # Long after its presence was written for the last time.
        text = await refused(processor_of(setup, second, "b"))

    assert "AMQP" in text
    assert "Kafka" in text
    assert "consumer_group" in text
    assert "live processors (a)" in text
    assert "b" not in setup.account.records(setup.group).member_by_owner


@pytest.mark.parametrize(("first", "second"), [(AMQP, KAFKA), (KAFKA, AMQP)])
async def test_another_offset_format_is_refused_if_there_is_a_checkpoint(first, second):
    """Even if all processors stopped weeks ago, and with the same owner id."""
    setup = Setup(2)
    setup.publish(3)
    await serve(setup, first, "a")
    await seconds(1_000_000)
    text = await refused(processor_of(setup, second, "a"))
    setup.publish(2)
    await serve(setup, first, "a")

    assert "checkpoints (of partition 0)" in text
    assert setup.numbers() == [0, 1, 2, 3, 4]


async def test_of_two_formats_that_start_at_once_at_least_one_is_refused():
    """Each writes its member record before it reads, so at least one sees the other."""
    setup = Setup()
    amqp, kafka = processor_of(setup, AMQP, "a"), processor_of(setup, KAFKA, "k")
    outcomes = []
    for processor in (amqp, kafka):
        try:
            await processor.start()
        except ConfigurationError:
            outcomes.append("refused")
    await amqp.stop()
    await kafka.stop()

    assert "refused" in outcomes


async def test_a_foreign_member_counts_as_amqp():
    """It writes an ownership record and no member record."""
    setup = Setup()
    store = MemoryCheckpointStore(setup.account)
    await store.open()
    claim = OwnershipClaim(partition_id="0", owner_id="net", expected_etag=None)
    await store.claim_ownership(setup.group, [claim])
    text = await refused(processor_of(setup, KAFKA, "k"))
    await seconds(3600)  # It died, and left no checkpoint: nothing to be taken wrongly.
    await serve(setup, KAFKA, "k")

    assert "live processors (net)" in text


@pytest.mark.parametrize(("first", "second"), [(AMQP, KAFKA), (KAFKA, AMQP)])
async def test_the_offset_before_the_first_event_has_no_format(first, second):
    """A source of either format may begin there and skips no event."""
    setup = Setup()
    await put(setup, BEFORE_FIRST_OFFSET, BEFORE_FIRST_SEQUENCE_NUMBER)
    setup.publish(3)
    await serve(setup, second, "b")

    assert setup.numbers() == [0, 1, 2]


async def put(setup, offset, number):
    """Replace the checkpoint, as a processor that does not know of formats does."""
    store = MemoryCheckpointStore(setup.account)
    await store.open()
    found = await store.read_checkpoint(setup.group, "0")
    await store.update_checkpoint(
        setup.group,
        CheckpointUpdate(
            partition_id="0",
            offset=offset,
            sequence_number=number,
            replaces=found,
            writer="azure",
        ),
    )


async def test_a_partition_stops_if_another_sdk_writes_an_offset_of_another_format(caplog):
    """The other SDK did not check the format. Going on from there would skip events."""
    caplog.set_level(logging.INFO, "eventproc")
    setup = Setup()
    setup.publish(3)
    async with processor_of(setup, KAFKA, "k"):
        await seconds(30)
        offset = setup.hub.events("0")[1].offset  # Over AMQP it would name that event.
        await put(setup, offset, 1_000)
        setup.publish(3)
        await seconds(120)
        stands = setup.checkpoint()
    numbers = setup.numbers()

    logged_events = [vars(record).get("event") for record in caplog.records]

    assert logged_events.count("partition_started") == 1  # After 1,000 it would skip events.
    assert numbers[:3] == [0, 1, 2]
    assert set(numbers) <= {0, 1, 2, 3, 4, 5}  # Those that were under way, and none again.
    assert len(numbers) == len(set(numbers))
    assert stands.sequence_number == 1_000
    assert "offset_format_mismatched" in logged_events


def stored(offset, number):
    """A checkpoint as a store returns it."""
    return Checkpoint(
        partition_id="0", offset=offset, sequence_number=number, etag="1", last_modified=BEGIN
    )


@pytest.mark.parametrize(
    ("offset", "number", "whose"),
    [
        ("4711", 3, AMQP),
        ("rep:1:2", 3, AMQP),
        (None, 3, AMQP),  # .NET 5.11 and others
        ("kafka:3", 3, KAFKA),
        ("kafka:3", None, KAFKA),
        (BEFORE_FIRST_OFFSET, BEFORE_FIRST_SEQUENCE_NUMBER, None),
        (None, None, None),
    ],
)
def test_a_checkpoint_shows_its_offset_format(offset, number, whose):
    """Every store returns the offset unchanged, so none can lose the format."""
    assert offset_format_in(stored(offset, number)) is whose
    assert offset is None or offset_format_of(offset) is whose


async def test_a_processor_whose_records_have_expired_does_not_count():
    """Without checkpoints, a dead processor does not make a start fail."""
    setup = Setup()
    store = MemoryCheckpointStore(setup.account)
    await store.open()
    await store.announce_member(setup.group, Member(owner_id="a", incarnation="1"))
    await seconds(timedelta(minutes=10).total_seconds())
    await serve(setup, KAFKA, "k")

"""What the port of a source means, run against every source there is.

The clauses know nothing of pytest or of a transport; a further source needs a bench of four
methods and a line in ``BENCHES``.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage

from eventproc.emulator import EventHubsEmulator
from eventproc.errors import (
    ConfigurationError,
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.sources.eventhubs import EventHubSource
from eventproc.sources.memory import MemoryEventSource, MemoryHub

GROUP = "$Default"
OTHER_GROUP = "audit"
PARTITIONS = 3
SOON = timedelta(seconds=5)
BRIEFLY = timedelta(milliseconds=150)


class Bench(Protocol):
    """A hub with partitions 0, 1 and 2; the last is left empty."""

    @property
    def published(self) -> Counter[str]:
        """How many events each partition ever got, which is the next sequence number."""

    def source(self) -> EventSource:
        """A source on the hub, not yet open."""

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        """Have the hub take in these events, in order."""

    async def grow(self) -> None:
        """Add a partition."""


class MemoryBench:
    """A hub in memory."""

    def __init__(self) -> None:
        self.hub = MemoryHub(PARTITIONS, consumer_groups=[GROUP, OTHER_GROUP])
        self.published: Counter[str] = Counter()

    def source(self) -> EventSource:
        return MemoryEventSource(self.hub)

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        for body in bodies:
            self.hub.publish(body, partition_id=partition_id)
        self.published[partition_id] += len(bodies)

    async def grow(self) -> None:
        self.hub.grow(len(self.hub.partition_ids()) + 1)


class EventHubsBench:
    """A hub in the emulator, published to by Azure's own client."""

    def __init__(self, emulator: EventHubsEmulator, producer: EventHubProducerClient) -> None:
        self.emulator = emulator
        self.producer = producer
        self.published: Counter[str] = Counter()

    def source(self) -> EventSource:
        return EventHubSource.from_connection_string(self.emulator.connection_string_for("hub"))

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        await asyncio.to_thread(self._send, partition_id, bodies)
        self.published[partition_id] += len(bodies)

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

    async def grow(self) -> None:
        await asyncio.to_thread(self.emulator.add_partitions, "hub", 1)


@pytest.fixture(scope="module", name="event_hubs")
def _event_hubs() -> Iterator[EventHubsBench]:
    """Yield one emulator for all clauses: publishing to a partition costs a second at first."""
    with (
        EventHubsEmulator({"hub": PARTITIONS}, consumer_groups=[OTHER_GROUP]) as emulator,
        EventHubProducerClient.from_connection_string(
            emulator.connection_string_for("hub")
        ) as producer,
    ):
        yield EventHubsBench(emulator, producer)


BENCHES = ("memory", "eventhubs")


@pytest.fixture(name="bench", params=BENCHES)
def _bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "memory":
        return MemoryBench()
    bench: Bench = request.getfixturevalue("event_hubs")
    return bench


# --- what the clauses are made of ----------------------------------------------------------------


def end_of(bench: Bench, partition_id: str) -> EventPosition:
    """The position behind everything that was published so far."""
    return EventPosition.from_sequence_number(bench.published[partition_id], is_inclusive=True)


@asynccontextmanager
async def opened(
    bench: Bench, partition_id: str = "0", position: EventPosition | None = None
) -> AsyncIterator[PartitionReceiver]:
    """A receiver, by default behind everything that was published so far."""
    position = position or end_of(bench, partition_id)
    async with bench.source() as source:
        yield await source.open_receiver(GROUP, partition_id, position)


async def take(
    receiver: PartitionReceiver, count: int, *, events_max: int = 100
) -> list[ReceivedEvent]:
    """Receive until so many events are there, or none comes any more."""
    events: list[ReceivedEvent] = []
    while len(events) < count:
        batch = await receiver.receive(events_max=events_max, wait_max=SOON)
        if not batch:
            break
        events += batch
    return events


def bodies(events: list[ReceivedEvent]) -> list[bytes]:
    return [event.body for event in events]


def numbered(count: int, prefix: bytes = b"") -> list[bytes]:
    return [prefix + b"%d" % number for number in range(count)]


async def refused(attempt: Awaitable[object], kind: type[Exception]) -> str:
    """The message of the error that an attempt must end with."""
    with pytest.raises(kind) as caught:
        await attempt
    return str(caught.value)


# --- the clauses ---------------------------------------------------------------------------------


async def events_come_in_order_and_once(bench: Bench) -> None:
    async with opened(bench) as receiver:
        await bench.publish("0", *numbered(250))
        events = await take(receiver, 250)
        later = await receiver.receive(events_max=10, wait_max=BRIEFLY)

    numbers = [event.sequence_number for event in events]
    assert bodies(events) == numbered(250)
    assert numbers == list(range(numbers[0], numbers[0] + 250))
    assert len({event.offset for event in events}) == 250
    assert list(later) == []


async def no_more_than_events_max_are_returned(bench: Bench) -> None:
    async with opened(bench) as receiver:
        await bench.publish("0", *numbered(7))
        sizes = []
        events: list[ReceivedEvent] = []
        while len(events) < 7:
            batch = await receiver.receive(events_max=3, wait_max=SOON)
            sizes.append(len(batch))
            events += batch

    assert bodies(events) == numbered(7)
    assert max(sizes) <= 3


async def a_waiting_receive_returns_as_soon_as_there_is_an_event(bench: Bench) -> None:
    async with opened(bench) as receiver:
        waiting = asyncio.create_task(
            receiver.receive(events_max=10, wait_max=timedelta(seconds=30))
        )
        await asyncio.sleep(0.05)
        begun = time.monotonic()
        await bench.publish("0", b"now")
        events = await waiting

    assert bodies(list(events)) == [b"now"]
    assert time.monotonic() - begun < 5


async def an_empty_receive_takes_wait_max(bench: Bench) -> None:
    async with opened(bench) as receiver:
        begun = time.monotonic()
        events = await receiver.receive(events_max=10, wait_max=BRIEFLY)
        waited = time.monotonic() - begun

    assert list(events) == []
    assert 0.9 * BRIEFLY.total_seconds() < waited < 2


async def no_wait_means_no_wait(bench: Bench) -> None:
    async with opened(bench) as receiver:
        begun = time.monotonic()
        events = await receiver.receive(events_max=10, wait_max=timedelta(0))

    assert list(events) == []
    assert time.monotonic() - begun < 1


async def earliest_is_the_oldest_event_there_is(bench: Bench) -> None:
    await bench.publish("0", b"any")
    async with opened(bench, position=EventPosition.earliest()) as receiver:
        events = await take(receiver, 1)

    assert events[0].sequence_number == 0


async def latest_is_only_what_comes_after(bench: Bench) -> None:
    await bench.publish("0", b"before")
    async with opened(bench, position=EventPosition.latest()) as receiver:
        await bench.publish("0", b"after")
        events = await take(receiver, 1)

    assert bodies(events) == [b"after"]


async def a_sequence_number_begins_after_or_at_its_event(bench: Bench) -> None:
    first = bench.published["0"]
    await bench.publish("0", b"a", b"b", b"c")
    after = EventPosition.from_sequence_number(first + 1)
    at = EventPosition.from_sequence_number(first + 1, is_inclusive=True)
    async with opened(bench, position=after) as receiver:
        events_after = await take(receiver, 1)
    async with opened(bench, position=at) as receiver:
        events_at = await take(receiver, 2)

    assert bodies(events_after) == [b"c"]
    assert bodies(events_at) == [b"b", b"c"]


async def an_offset_begins_after_or_at_its_event(bench: Bench) -> None:
    async with opened(bench) as receiver:
        await bench.publish("0", b"a", b"b", b"c")
        offset = (await take(receiver, 3))[1].offset
    async with opened(bench, position=EventPosition.from_offset(offset)) as receiver:
        events_after = await take(receiver, 1)
    at = EventPosition.from_offset(offset, is_inclusive=True)
    async with opened(bench, position=at) as receiver:
        events_at = await take(receiver, 2)

    assert bodies(events_after) == [b"c"]
    assert bodies(events_at) == [b"b", b"c"]


async def a_time_begins_after_it(bench: Bench) -> None:
    await bench.publish("1", b"before")
    await asyncio.sleep(0.02)
    now = datetime.now(UTC)
    await asyncio.sleep(0.02)
    await bench.publish("1", b"after")
    async with opened(bench, "1", EventPosition.from_enqueued_time(now)) as receiver:
        events = await take(receiver, 1)

    assert bodies(events) == [b"after"]
    assert now < events[0].enqueued_time < now + timedelta(seconds=10)


async def a_position_that_never_was_is_refused(bench: Bench) -> None:
    await bench.publish("0", b"any")
    async with bench.source() as source:
        for offset in ("nonsense", "999999999"):
            position = EventPosition.from_offset(offset)
            await refused(source.open_receiver(GROUP, "0", position), SourceRejectedError)


async def a_cancelled_receive_loses_nothing(bench: Bench) -> None:
    events: list[ReceivedEvent] = []
    async with opened(bench) as receiver:
        publishing = asyncio.create_task(bench.publish("0", *numbered(500)))
        for attempt in range(200):
            receiving = asyncio.create_task(receiver.receive(events_max=2, wait_max=SOON))
            for _ in range(attempt % 5):
                await asyncio.sleep(0)
            receiving.cancel()
            try:
                events += await receiving
            except asyncio.CancelledError:
                continue
        await publishing
        events += await take(receiver, 500 - len(events))

    assert bodies(events) == numbered(500)


async def the_newer_receiver_displaces_the_older(bench: Bench) -> None:
    async with bench.source() as mine, bench.source() as theirs:
        older = await mine.open_receiver(GROUP, "0", end_of(bench, "0"))
        waiting = asyncio.create_task(older.receive(events_max=1, wait_max=timedelta(seconds=30)))
        await asyncio.sleep(0.05)
        newer = await theirs.open_receiver(GROUP, "0", end_of(bench, "0"))
        await refused(waiting, ReceiverDisplacedError)
        await refused(older.receive(events_max=1, wait_max=SOON), ReceiverDisplacedError)
        await bench.publish("0", b"for the newer")
        events = await take(newer, 1)

    assert bodies(events) == [b"for the newer"]


async def other_partitions_and_groups_are_not_displaced(bench: Bench) -> None:
    async with bench.source() as source:
        receivers = [
            await source.open_receiver(group, partition_id, end_of(bench, partition_id))
            for group, partition_id in ((GROUP, "0"), (GROUP, "1"), (OTHER_GROUP, "0"))
        ]
        await bench.publish("0", b"zero")
        await bench.publish("1", b"one")
        received = [bodies(await take(receiver, 1)) for receiver in receivers]

    assert received == [[b"zero"], [b"one"], [b"zero"]]


async def closing_twice_is_fine_and_receiving_then_is_refused(bench: Bench) -> None:
    async with opened(bench) as receiver:
        await receiver.close()
        await receiver.close()
        await refused(receiver.receive(events_max=1, wait_max=SOON), SourceUnavailableError)


async def closing_the_source_closes_its_receivers_at_once(bench: Bench) -> None:
    source = bench.source()
    await source.open()
    await source.open()
    receiver = await source.open_receiver(GROUP, "0", end_of(bench, "0"))
    waiting = asyncio.create_task(receiver.receive(events_max=1, wait_max=timedelta(seconds=30)))
    await asyncio.sleep(0.05)
    begun = time.monotonic()
    await source.close()
    await source.close()
    closing_s = time.monotonic() - begun
    await refused(waiting, SourceUnavailableError)

    assert closing_s < 1


async def a_source_opens_again_after_closing(bench: Bench) -> None:
    source = bench.source()
    async with source:
        first = await source.partition_ids()
    async with source:
        second = await source.partition_ids()

    assert first == second


async def an_unknown_partition_is_refused(bench: Bench) -> None:
    async with bench.source() as source:
        attempt = source.open_receiver(GROUP, "77", EventPosition.earliest())
        opening = await refused(attempt, SourceRejectedError)
        asking = await refused(source.partition_properties("77"), SourceRejectedError)

    assert "77" in opening
    assert "77" in asking


async def an_unknown_group_is_a_wrong_setting(bench: Bench) -> None:
    async with bench.source() as source:
        attempt = source.open_receiver("nobody", "0", EventPosition.earliest())
        await refused(attempt, SourceRejectedError)
        checking = await refused(source.check_consumer_group("nobody"), ConfigurationError)

    assert "nobody" in checking


async def checking_a_group_disturbs_nobody(bench: Bench) -> None:
    async with bench.source() as source:
        await source.check_consumer_group(OTHER_GROUP)
        receiver = await source.open_receiver(GROUP, "0", end_of(bench, "0"))
        await source.check_consumer_group(GROUP)
        await bench.publish("0", b"still here")
        events = await take(receiver, 1)

    assert bodies(events) == [b"still here"]


async def properties_tell_where_a_partition_begins_and_ends(bench: Bench) -> None:
    async with opened(bench) as receiver:
        await bench.publish("0", b"newest")
        (newest,) = await take(receiver, 1)
        async with bench.source() as source:
            full = await source.partition_properties("0")
            empty = await source.partition_properties("2")

    assert full.beginning_sequence_number == 0
    assert full.last_enqueued_sequence_number == newest.sequence_number
    assert full.last_enqueued_offset == newest.offset
    assert full.last_enqueued_time == newest.enqueued_time
    assert not full.is_empty
    assert empty.last_enqueued_sequence_number == -1
    assert empty.last_enqueued_time is None
    assert empty.is_empty


async def events_tell_of_the_newest_of_their_partition(bench: Bench) -> None:
    async with opened(bench) as receiver:
        untold = receiver.last_enqueued
        await bench.publish("0", *numbered(20))
        events = await take(receiver, 20)
        told = receiver.last_enqueued

    assert untold is None or untold.sequence_number < events[0].sequence_number
    assert told is not None
    assert told.sequence_number == events[-1].sequence_number
    assert told.offset == events[-1].offset


async def a_hub_that_grows_is_seen(bench: Bench) -> None:
    async with bench.source() as source:
        before = await source.partition_ids()
        await bench.grow()
        after = await source.partition_ids()
        new = str(len(before))
        receiver = await source.open_receiver(GROUP, new, EventPosition.earliest())
        await bench.publish(new, b"first")
        events = await take(receiver, 1)

    assert list(before) == [str(number) for number in range(len(before))]
    assert list(after) == [*before, new]
    assert bodies(events) == [b"first"]


CLAUSES: tuple[Callable[[Bench], Awaitable[None]], ...] = (
    events_come_in_order_and_once,
    no_more_than_events_max_are_returned,
    a_waiting_receive_returns_as_soon_as_there_is_an_event,
    an_empty_receive_takes_wait_max,
    no_wait_means_no_wait,
    earliest_is_the_oldest_event_there_is,
    latest_is_only_what_comes_after,
    a_sequence_number_begins_after_or_at_its_event,
    an_offset_begins_after_or_at_its_event,
    a_time_begins_after_it,
    a_position_that_never_was_is_refused,
    a_cancelled_receive_loses_nothing,
    the_newer_receiver_displaces_the_older,
    other_partitions_and_groups_are_not_displaced,
    closing_twice_is_fine_and_receiving_then_is_refused,
    closing_the_source_closes_its_receivers_at_once,
    a_source_opens_again_after_closing,
    an_unknown_partition_is_refused,
    an_unknown_group_is_a_wrong_setting,
    checking_a_group_disturbs_nobody,
    properties_tell_where_a_partition_begins_and_ends,
    events_tell_of_the_newest_of_their_partition,
    a_hub_that_grows_is_seen,
)


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.__name__)
async def test_source_keeps_the_promises_of_its_port(clause, bench):
    """Each clause is a sentence of the port, in the name of its function."""
    await clause(bench)

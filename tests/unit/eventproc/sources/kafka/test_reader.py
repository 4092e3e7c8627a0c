"""The thread that reads: bounded, in order, and never silent about its end."""

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from eventproc.errors import (
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.sources.kafka.errors import ClientError
from eventproc.sources.kafka.feed import OVERHEAD_BYTES, Feed
from eventproc.sources.kafka.reader import Reader
from eventproc.sources.kafka.receiver import KafkaReceiver
from tests.unit.eventproc.sources.kafka.messages import FakeMessage, Fault

SOON = timedelta(seconds=10)
BRIEFLY = timedelta(milliseconds=50)
CHUNK = 10


class FakeConsumer:
    """Partitions of so many messages, which forgets what was fetched when it is paused.

    It belongs to the reading thread, but for what a test puts into it.
    """

    def __init__(self, count=0):
        self.count = count
        self.marks = 0
        """Offsets behind the last message that are none."""
        self.position = {}
        self.paused = set()
        self.put: deque[FakeMessage] = deque()
        self.said: deque[ClientError] = deque()
        self.calls = []
        self.is_broken = False

    def read(self, wait_s):
        if self.is_broken:
            raise ValueError("nobody expected this")
        messages = [self.put.popleft() for _ in range(len(self.put))]
        for partition, position in self.position.items():
            if partition not in self.paused:
                end = max(position, min(self.count, position + CHUNK))
                messages += [FakeMessage(n, partition=partition) for n in range(position, end)]
                self.position[partition] = end
        return messages

    def client_errors(self):
        return [self.said.popleft() for _ in range(len(self.said))]

    def assign(self, partition, offset):
        self.calls.append(("assign", partition, offset))
        self.position[partition] = offset

    def unassign(self, partition):
        self.calls.append(("unassign", partition))
        del self.position[partition]

    def pause(self, partition):
        self.paused.add(partition)

    def resume(self, partition):
        self.paused.discard(partition)

    def high(self, partition):
        return self.count + self.marks

    def close(self):
        self.calls.append(("close",))


def feed_of(start=0, *, partition=0, room=1000, room_bytes=10**9, after_ms=None):
    return Feed(partition, start, after_ms=after_ms, room=room, room_bytes=room_bytes)


async def opened(reader, feed):
    await reader.open(feed)
    return KafkaReceiver(reader, feed)


async def take(receiver, count, *, most=7):
    numbers: list[int] = []
    while len(numbers) < count:
        events = await receiver.receive(events_max=most, wait_max=SOON)
        assert events, "nothing comes any more"
        numbers += [event.sequence_number for event in events]
    return numbers


async def until(is_so):
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - a thread does it, and sets no event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def reading(consumer):
    """A reader that is closed in any case."""
    reader = Reader(lambda: consumer, "test")
    try:
        yield reader
    finally:
        await reader.close()


@pytest.mark.parametrize(("room", "room_bytes"), [(30, 10**9), (10**9, 30 * (OVERHEAD_BYTES + 1))])
async def test_a_feed_that_nobody_takes_from_is_bounded_and_holds_nobody_up(room, room_bytes):
    """In messages and in bytes; and when it goes on, nothing is missing and nothing comes twice."""
    consumer = FakeConsumer(500)
    reader = Reader(lambda: consumer, "test")
    slow = await opened(reader, feed_of(room=room, room_bytes=room_bytes))
    quick = await opened(reader, feed_of(partition=1, room=room, room_bytes=room_bytes))

    assert await take(quick, 500) == list(range(500))
    waiting = len(slow._feed.messages)
    assert 30 <= waiting <= 30 + CHUNK
    assert await take(slow, 500) == list(range(500))
    await reader.close()


async def test_the_newest_is_the_last_event_and_not_the_mark_of_a_transaction():
    """Behind the last event are offsets that no reader gets; at the end there is no lag."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        consumer.count, consumer.marks = 5, 2
        feed = feed_of()
        feed.high = 7
        receiver = await opened(reader, feed)
        await take(receiver, 5)
        before = receiver.last_enqueued
        consumer.put.append(FakeMessage(7, error=Fault("_PARTITION_EOF")))
        await until(lambda: receiver.last_enqueued != before)

    assert before is not None
    assert before.sequence_number == 6
    assert receiver.last_enqueued is not None
    assert receiver.last_enqueued.sequence_number == 4
    assert receiver.last_enqueued.offset == "kafka:4"


async def test_an_empty_partition_wakes_nobody():
    """That it ends is no event."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of(3))
        consumer.put.append(FakeMessage(3, error=Fault("_PARTITION_EOF")))
        events = await receiver.receive(events_max=1, wait_max=BRIEFLY)

        assert list(events) == []
        assert receiver.last_enqueued is not None
        assert receiver.last_enqueued.sequence_number == 2


async def test_what_is_not_after_a_time_is_left_out_only_at_the_beginning():
    """A broker may find a time roughly; and the times of producers need not rise."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of(after_ms=100))
        consumer.put.extend(FakeMessage(n, ms=ms) for n, ms in enumerate([50, 100, 101, 90, 200]))

        assert await take(receiver, 3) == [2, 3, 4]


async def test_what_was_read_before_is_not_handed_out_again():
    """As a client may that fetches anew."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of(2))
        consumer.put.extend(FakeMessage(n) for n in (0, 1, 2, 3, 2, 3, 4))

        assert await take(receiver, 3) == [2, 3, 4]


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("_AUTO_OFFSET_RESET", SourceUnavailableError, "retention"),
        ("TOPIC_AUTHORIZATION_FAILED", SourceRejectedError, "TOPIC_AUTHORIZATION_FAILED"),
        ("UNKNOWN_TOPIC_OR_PART", SourceRejectedError, "so it is"),
        ("NOT_LEADER_FOR_PARTITION", SourceUnavailableError, "so it is"),
    ],
)
async def test_an_error_of_one_partition_ends_that_one(code, kind, said):
    """After what came before it; the others go on."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        hit, other = [await opened(reader, feed_of(partition=p)) for p in (0, 1)]
        consumer.put.extend([FakeMessage(0), FakeMessage(1, error=Fault(code))])
        numbers = await take(hit, 1)
        with pytest.raises(kind, match=said):
            await hit.receive(events_max=1, wait_max=SOON)
        consumer.put.append(FakeMessage(0, partition=1))

        assert numbers == [0]
        assert await take(other, 1) == [0]


@pytest.mark.parametrize(
    ("client_error", "kind"),
    [
        (ClientError("_ALL_BROKERS_DOWN", "1/1 brokers are down"), SourceUnavailableError),
        (ClientError("_AUTHENTICATION", "wrong password"), SourceRejectedError),
    ],
)
async def test_what_concerns_all_ends_all_and_the_thread_goes_on(client_error, kind):
    """Whoever opens a partition again is served, as soon as there is something."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receivers = [await opened(reader, feed_of(partition=p)) for p in (0, 1)]
        consumer.said.append(client_error)
        for receiver in receivers:
            with pytest.raises(kind, match=client_error.text):
                await receiver.receive(events_max=1, wait_max=SOON)
        again = await opened(reader, feed_of())
        consumer.put.append(FakeMessage(0))

        assert await take(again, 1) == [0]
        assert not reader.is_over


async def test_a_connection_that_breaks_ends_nothing():
    """The client makes another by itself."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of())
        consumer.said.append(ClientError("_TRANSPORT", "connection reset"))
        await until(lambda: not consumer.said)
        consumer.put.append(FakeMessage(0))

        assert await take(receiver, 1) == [0]


@pytest.mark.parametrize("is_fatal", [True, False])
async def test_a_client_that_gives_up_ends_the_thread_with_a_reason(is_fatal):
    """As does what nobody expected; then another reader is made."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of())
        if is_fatal:
            consumer.said.append(ClientError("_FATAL", "fenced", is_fatal=True))
        consumer.is_broken = not is_fatal
        with pytest.raises(
            SourceUnavailableError, match="fenced" if is_fatal else "nobody expected"
        ):
            await receiver.receive(events_max=1, wait_max=SOON)
        await until(lambda: ("close",) in consumer.calls)

        assert reader.is_over
        with pytest.raises(SourceUnavailableError, match="has ended"):
            await reader.open(feed_of())


async def test_a_newer_receiver_of_the_same_process_displaces_the_older():
    """A client reads a partition from one place only."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        older = await opened(reader, feed_of())
        consumer.put.append(FakeMessage(0))
        await until(lambda: older._feed.messages)
        newer = await opened(reader, feed_of(1))
        with pytest.raises(ReceiverDisplacedError):
            await older.receive(events_max=1, wait_max=SOON)
        await older.close()
        consumer.put.append(FakeMessage(1))

        assert await take(newer, 1) == [1]
        assert consumer.position == {0: 1}


async def test_a_paused_partition_that_is_opened_again_is_not_paused():
    """A pause would outlast the assignment, and nothing would ever come."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        consumer.count = 100
        full = await opened(reader, feed_of(room=5))
        await until(lambda: consumer.paused)
        await full.close()
        again = await opened(reader, feed_of(40))

        assert await take(again, 60) == list(range(40, 100))


async def test_a_failure_that_nobody_expected_leaves_nobody_waiting():
    """Whoever asked for a partition is told, as are those who read others."""

    class Broken(FakeConsumer):
        def assign(self, partition, offset):
            if partition == 1:
                raise OverflowError("no such number")
            super().assign(partition, offset)

    async with reading(Broken()) as reader:
        other = await opened(reader, feed_of())
        async with asyncio.timeout(5):
            with pytest.raises(SourceUnavailableError, match="no such number"):
                await reader.open(feed_of(partition=1))
            with pytest.raises(SourceUnavailableError, match="no such number"):
                await other.receive(events_max=1, wait_max=SOON)

        assert reader.is_over

"""The thread that reads: bounded, in order, and always reporting why it ended."""

import asyncio
import weakref
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from eventproc.errors import (
    PositionLostError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.sources.kafka import _reader as reader_module
from eventproc.sources.kafka._errors import ClientError
from eventproc.sources.kafka._feed import OVERHEAD_BYTES, Feed
from eventproc.sources.kafka._reader import Reader
from eventproc.sources.kafka._receiver import KafkaReceiver
from tests.unit.eventproc.sources.kafka.fake_consumer import CHUNK, FakeConsumer
from tests.unit.eventproc.sources.kafka.messages import FakeMessage, Fault

SOON = timedelta(seconds=10)
PATIENCE = timedelta(seconds=0.1)


def feed_of(start=0, *, partition=0, room=1000, room_bytes=10**9, after_ms=None):
    return Feed(partition, start, after_ms=after_ms, room=room, room_bytes=room_bytes)


async def opened(reader, feed):
    await reader.open(feed)
    return KafkaReceiver(reader, feed)


async def take(receiver, count, *, most=7):
    numbers: list[int] = []
    while len(numbers) < count:
        events = await receiver.receive(events_max=most, wait_max=SOON)
        assert events, "no more events"
        numbers += [event.sequence_number for event in events]
    return numbers


async def until(is_so):
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - a thread does it, and sets no event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def reading(consumer, patience=SOON):
    """A reader that is closed in any case."""
    reader = Reader(consumer, "test", patience)
    try:
        yield reader
    finally:
        await reader.close()


@pytest.mark.parametrize("is_read_at_once", [False, True])
@pytest.mark.parametrize(("room", "room_bytes"), [(30, 10**9), (10**9, 30 * (OVERHEAD_BYTES + 1))])
async def test_a_feed_that_is_not_read_is_bounded_and_does_not_delay_others(
    room, room_bytes, is_read_at_once, monkeypatch
):
    """In messages and in bytes. When it is read again, no message is missing or repeated.

    Also if each read is followed by the next one at once, because it was as long as it can be.
    """
    monkeypatch.setattr(reader_module, "READ_MAX", 2 * CHUNK if is_read_at_once else 10**9)
    consumer: Any = FakeConsumer(500)
    reader = Reader(consumer, "test", SOON)
    slow = await opened(reader, feed_of(room=room, room_bytes=room_bytes))
    quick = await opened(reader, feed_of(partition=1, room=room, room_bytes=room_bytes))

    assert await take(quick, 500) == list(range(500))
    waiting = slow._feed.count
    assert 30 <= waiting <= 30 + CHUNK
    assert await take(slow, 500) == list(range(500))
    await reader.close()


async def test_a_client_that_hears_nothing_and_gets_no_answer_is_given_up():
    """Within three times the patience; also a feed that had events before ends."""
    consumer = FakeConsumer(5)
    consumer.is_answered = False
    async with reading(consumer, PATIENCE) as reader:
        receiver = await opened(reader, feed_of())
        await take(receiver, 5)
        with pytest.raises(SourceUnavailableError, match=r"heard nothing for .* no broker"):
            await receiver.receive(events_max=1, wait_max=SOON)

    assert ("ask",) in consumer.calls
    assert reader.is_over


@pytest.mark.parametrize("is_full", [False, True])
async def test_a_quiet_partition_is_no_reason_to_give_up_a_client(is_full):
    """It asks when nothing came for long, but not because a receiver takes nothing."""
    consumer = FakeConsumer(30 if is_full else 0)
    consumer.is_answered = not is_full
    async with reading(consumer, PATIENCE) as reader:
        receiver = await opened(reader, feed_of(room=10))
        if is_full:
            await asyncio.sleep(4 * PATIENCE.total_seconds())
        else:
            await until(lambda: consumer.calls.count(("ask",)) == 2)
            consumer.count = 30
        assert await take(receiver, 30) == list(range(30))

    assert (("ask",) in consumer.calls) is not is_full


async def test_the_newest_event_is_not_the_mark_of_a_transaction():
    """Offsets after the last event belong to no event, so at the end there is no lag."""
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


async def test_one_read_has_messages_of_several_partitions_and_ends_between_them():
    """Each partition gets its messages in order, with the gaps of a compacted topic."""
    end = FakeMessage(9, partition=1, error=Fault("_PARTITION_EOF"))
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        first = await opened(reader, feed_of())
        second = await opened(reader, feed_of(partition=1))
        places = [(0, 0), (0, 2), (1, 4), None, (0, 3), (1, 9), (1, 10)]
        consumer.put.extend(
            [end if p is None else FakeMessage(p[1], partition=p[0]) for p in places]
        )

        assert await take(first, 3) == [0, 2, 3]
        assert await take(second, 3) == [4, 9, 10]
        assert first._feed._bytes == second._feed._bytes == 0


async def test_only_the_first_events_are_filtered_by_the_start_time():
    """A broker finds a time roughly; and times of later events need not rise."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of(after_ms=100))
        consumer.put.extend(FakeMessage(n, ms=ms) for n, ms in enumerate([50, 100, 101, 90, 200]))

        assert await take(receiver, 3) == [2, 3, 4]


async def test_messages_that_were_fetched_again_are_not_returned_twice():
    """A client may fetch from an earlier offset again."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of(2))
        consumer.put.extend(FakeMessage(n) for n in (0, 1, 2, 3, 2, 3, 4))

        assert await take(receiver, 3) == [2, 3, 4]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ((0, 1, 2, 1, 2, 3), [0, 1, 2, 3]),
        ((0, 1, 1, 3), [0, 1, 3]),
        ((0, 2, 1, 3), [0, 2, 3]),
    ],
)
async def test_a_read_that_has_a_message_twice_returns_it_once(read, expected):
    """Also if its first and last offset are as far apart as those of a read without gaps."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of())
        consumer.put.extend([FakeMessage(n) for n in read])

        assert await take(receiver, len(expected)) == expected


async def test_messages_of_a_closed_partition_do_not_hide_those_after_them():
    """The client may return some that it had when the partition was closed."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of())
        consumer.put.extend([FakeMessage(7, partition=1), FakeMessage(0)])

        assert await take(receiver, 1) == [0]


async def test_a_read_after_one_that_was_full_does_not_wait(monkeypatch):
    """The messages of the first one would wait for it."""
    monkeypatch.setattr(reader_module, "READ_MAX", CHUNK)
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of())
        consumer.count = CHUNK
        assert await take(receiver, CHUNK) == list(range(CHUNK))
        await until(lambda: 0 in consumer.waits)

    after = consumer.waits[consumer.waits.index(0) + 1 :]
    assert set(consumer.waits) == {0, reader_module.READ_S}
    assert 0 not in after


async def test_the_messages_of_a_read_are_freed_before_the_next_one(monkeypatch):
    """Those of two reads would be enough to start Python's garbage collector."""
    monkeypatch.setattr(reader_module, "READ_MAX", CHUNK)
    former: list[weakref.ref[FakeMessage]] = []
    kept_counts: list[int] = []

    class WatchedConsumer(FakeConsumer):
        def read(self, wait_s):
            kept_counts.append(sum(1 for message in former if message() is not None))
            messages = super().read(wait_s)
            former[:] = map(weakref.ref, messages)
            return messages

    consumer = WatchedConsumer(5 * CHUNK)
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of())
        await take(receiver, 5 * CHUNK)

    assert set(kept_counts) == {0}
    assert consumer.waits.count(0) >= 4


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        ("_AUTO_OFFSET_RESET", SourceUnavailableError, "retention"),
        ("TOPIC_AUTHORIZATION_FAILED", SourceRejectedError, "TOPIC_AUTHORIZATION_FAILED"),
        ("UNKNOWN_TOPIC_OR_PART", SourceRejectedError, "for this reason"),
        ("NOT_LEADER_FOR_PARTITION", SourceUnavailableError, "for this reason"),
    ],
)
async def test_an_error_of_one_partition_ends_its_receiver(code, kind, message):
    """After the events before it. The other partitions are still read."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        failed, other = [await opened(reader, feed_of(partition=p)) for p in (0, 1)]
        consumer.put.extend([FakeMessage(0), FakeMessage(1, error=Fault(code))])
        numbers = await take(failed, 1)
        with pytest.raises(kind, match=message):
            await failed.receive(events_max=1, wait_max=SOON)
        consumer.put.append(FakeMessage(0, partition=1))

        assert numbers == [0]
        assert await take(other, 1) == [0]


async def test_a_truncated_log_is_not_one_that_retention_overtook():
    """By the client's words: an end of -1 means that the broker knows none."""
    words = (
        "Partition log truncation detected at offset 10 (leader epoch 0): broker end offset is {} "
        "(offset leader epoch {}). Reset to INVALID."
    )
    for end, kind in ((6, PositionLostError), (-1, SourceUnavailableError)):
        consumer = FakeConsumer()
        async with reading(consumer) as reader:
            receiver = await opened(reader, feed_of())
            error = Fault("_AUTO_OFFSET_RESET", words.format(end, end))
            consumer.put.append(FakeMessage(0, error=error))
            with pytest.raises(SourceError) as caught:
                await receiver.receive(events_max=1, wait_max=SOON)

        assert caught.type is kind


async def test_a_broken_connection_ends_no_receiver():
    """The client reconnects by itself."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of())
        consumer.errors.append(ClientError("_TRANSPORT", "connection reset"))
        await until(lambda: not consumer.errors)
        consumer.put.append(FakeMessage(0))

        assert await take(receiver, 1) == [0]


@pytest.mark.parametrize(
    ("client_error", "kind", "words"),
    [
        (ClientError("_FATAL", "fenced", is_fatal=True), SourceUnavailableError, "fenced"),
        (ClientError("_ALL_BROKERS_DOWN", "1/1 are down"), SourceUnavailableError, "1/1 are down"),
        (ClientError("_AUTHENTICATION", "wrong password"), SourceRejectedError, "wrong password"),
        (None, SourceUnavailableError, "an unexpected error"),
    ],
)
async def test_an_error_of_the_whole_client_ends_the_thread(client_error, kind, words):
    """All receivers raise it, and a new reader has to be made."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receivers = [await opened(reader, feed_of(partition=p)) for p in (0, 1)]
        if client_error is not None:
            consumer.errors.append(client_error)
        consumer.is_broken = client_error is None
        for receiver in receivers:
            with pytest.raises(kind, match=words):
                await receiver.receive(events_max=1, wait_max=SOON)
        await until(lambda: ("close",) in consumer.calls)

        assert reader.is_over
        with pytest.raises(SourceUnavailableError, match="has ended"):
            await reader.open(feed_of())


async def test_a_newer_receiver_of_the_same_process_displaces_the_older():
    """A client reads a partition from one offset only."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        older = await opened(reader, feed_of())
        consumer.put.append(FakeMessage(0))
        await until(lambda: older._feed.count)
        newer = await opened(reader, feed_of(1))
        with pytest.raises(ReceiverDisplacedError):
            await older.receive(events_max=1, wait_max=SOON)
        await older.close()
        consumer.put.append(FakeMessage(1))

        assert await take(newer, 1) == [1]
        assert consumer.position == {0: 1}


async def test_a_partition_paused_before_it_was_closed_is_read_when_opened_again():
    """The client would otherwise keep the pause over the new assignment."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        consumer.count = 100
        paused = await opened(reader, feed_of(room=5))
        await until(lambda: consumer.paused)
        await paused.close()
        reopened = await opened(reader, feed_of(40))

        assert await take(reopened, 60) == list(range(40, 100))


async def test_an_unexpected_error_reaches_all_callers():
    """Those that are opening a partition, and those that receive from others."""

    class FailingConsumer(FakeConsumer):
        def assign(self, partition, offset, leader_epoch=None):
            if partition == 1:
                raise OverflowError("no such number")
            super().assign(partition, offset)

    async with reading(FailingConsumer()) as reader:
        other = await opened(reader, feed_of())
        async with asyncio.timeout(5):
            with pytest.raises(SourceUnavailableError, match="no such number"):
                await reader.open(feed_of(partition=1))
            with pytest.raises(SourceUnavailableError, match="no such number"):
                await other.receive(events_max=1, wait_max=SOON)

        assert reader.is_over

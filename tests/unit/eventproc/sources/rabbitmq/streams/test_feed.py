"""What arrives in chunks is taken as single events, from the start on."""

import pytest

from eventproc.errors import SourceUnavailableError
from eventproc.sources.rabbitmq.streams import StreamOptions
from eventproc.sources.rabbitmq.streams.chunk import Chunk
from eventproc.sources.rabbitmq.streams.event import key_reader
from eventproc.sources.rabbitmq.streams.feed import Feed
from eventproc.sources.rabbitmq.streams.position import StreamBounds

EMPTY = StreamBounds(0, 0, None)


def feed_from(start, bounds=EMPTY, **more):
    return Feed("s", start, bounds, StreamOptions(), key=key_reader("group-id"), **more)


def chunk(first, count, time_ms=1_000):
    return Chunk(first, time_ms, [b"%d" % n for n in range(first, first + count)], 10 * count)


def numbers(events):
    return [event.sequence_number for event in events]


def test_events_are_taken_in_parts_over_the_bounds_of_chunks():
    """Each once, with its own number and the time of its chunk."""
    feed = feed_from(0)
    feed.put(chunk(0, 3, 1_000))
    feed.put(chunk(3, 2, 2_000))
    first, second, third = feed.take(2), feed.take(2), feed.take(9)

    assert (numbers(first), numbers(second), numbers(third)) == ([0, 1], [2, 3], [4])
    assert [event.body for event in first + second + third] == [b"0", b"1", b"2", b"3", b"4"]
    assert [event.enqueued_time.timestamp() for event in second] == [1, 2]
    assert (feed.is_empty, feed.credit.held_events, feed.credit.held_bytes) == (True, 0, 0)


def test_events_before_the_start_are_dropped():
    """The broker sends the whole chunk that contains the start, and chunks before a time."""
    feed = feed_from(4)
    feed.put(chunk(0, 3))
    feed.put(chunk(3, 1))
    assert feed.is_empty
    feed.put(chunk(3, 3))

    assert not feed.is_empty
    assert feed.credit.held_events == 2
    assert numbers(feed.take(9)) == [4, 5]
    assert (feed.credit.held_events, feed.credit.held_bytes) == (0, 0)


def test_events_that_arrive_twice_are_taken_once():
    """Whatever the broker sends again."""
    feed = feed_from(0)
    feed.put(chunk(0, 3))
    feed.put(chunk(0, 3))
    feed.put(chunk(2, 2))

    assert numbers(feed.take(9)) == [0, 1, 2, 3]


def test_chunks_before_a_time_are_dropped_until_one_is_new_enough():
    """A later one with an older time, after the broker's clock was set back, is kept."""
    feed = feed_from(0, from_ms=2_000)
    feed.put(chunk(0, 1, 1_999))
    feed.put(chunk(1, 1, 2_000))
    feed.put(chunk(2, 1, 1_500))

    assert numbers(feed.take(9)) == [1, 2]


def test_a_gap_is_passed_before_its_next_event_is_taken():
    """What the broker stores besides events takes offsets: then nothing was lost."""
    feed = feed_from(0)
    feed.put(chunk(0, 2))
    feed.put(chunk(3, 1))
    before = numbers(feed.take(9))
    has_gap = feed.has_gap
    feed.pass_gap(low=2)

    assert (before, has_gap, feed.has_gap, feed.start) == ([0, 1], True, False, 0)
    assert numbers(feed.take(9)) == [3]


def test_events_of_a_gap_that_the_stream_does_not_have_any_more_are_lost():
    """Retention was faster than the reader: reading goes on, and the start shows the loss."""
    feed = feed_from(0)
    feed.put(chunk(0, 2))
    feed.put(chunk(30, 1))
    feed.take(9)
    feed.pass_gap(low=3)

    assert feed.start == 30
    assert numbers(feed.take(9)) == [30]


def test_the_newest_event_is_the_last_that_arrived_or_was_reported():
    """A report that is older than what arrived meanwhile changes nothing."""
    feed = feed_from(5, StreamBounds(0, 5, 900))
    known = feed.last_enqueued
    feed.note_end(9, 1_000)
    feed.put(chunk(5, 2, 950))
    reported = feed.last_enqueued
    feed.put(chunk(7, 4, 1_100))
    arrived = feed.last_enqueued

    assert (known.sequence_number, known.offset) == (4, "stream:4")
    assert known.enqueued_time.timestamp() == 0.9
    assert reported.sequence_number == 8
    assert (arrived.sequence_number, arrived.enqueued_time.timestamp()) == (10, 1.1)
    assert feed_from(0).last_enqueued is None


@pytest.mark.parametrize("reasons", [("first",), ("first", "second")])
def test_a_feed_ends_for_the_first_reason(reasons):
    """What arrived before can still be taken."""
    feed = feed_from(0)
    feed.put(chunk(0, 1))
    for reason in reasons:
        feed.end(SourceUnavailableError(reason))

    assert str(feed.error) == "first"
    assert feed.arrived.is_set()
    assert numbers(feed.take(9)) == [0]

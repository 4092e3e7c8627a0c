"""The queue of one partition's messages: what is taken out, and what still waits."""

from typing import cast

import pytest

from eventproc.sources.kafka._columns import ColumnBatch
from eventproc.sources.kafka._event import time_of
from eventproc.sources.kafka._feed import OVERHEAD_BYTES, Feed
from eventproc.sources.kafka._reader import Reader
from eventproc.sources.kafka._receiver import KafkaReceiver
from tests.unit.eventproc.sources.kafka.messages import FakeMessage


def test_a_feed_returns_no_more_than_was_asked_for():
    """Of several reads, the last one in part."""
    feed = Feed(0, 0, after_ms=None, room=1000, room_bytes=10**9)
    for first in (0, 3, 6, 9):
        feed.put([FakeMessage(n) for n in range(first, first + 3)])

    taken = [[event.sequence_number for event in feed.take(most)] for most in (7, 1, 2, 9, 9)]

    assert taken == [[0, 1, 2, 3, 4, 5, 6], [7], [8, 9], [10, 11], []]


@pytest.mark.parametrize("reads", [1, 2])
def test_after_read_columns_a_feed_returns_columns(reads):
    """Of one read and of several."""
    feed = Feed(0, 0, after_ms=None, room=1000, room_bytes=10**9)
    KafkaReceiver(cast("Reader", None), feed).read_columns()
    for first in range(reads):
        feed.put([FakeMessage(first)])

    assert isinstance(feed.take(9), ColumnBatch)


def test_a_part_of_a_read_is_of_columns_as_the_whole():
    """What was asked for, and what still waits."""
    feed = Feed(0, 0, after_ms=None, room=1000, room_bytes=10**9)
    KafkaReceiver(cast("Reader", None), feed).read_columns()
    feed.put([FakeMessage(n) for n in range(3)])

    assert [type(feed.take(most)) for most in (1, 1, 1)] == 3 * [ColumnBatch]


def test_a_message_that_the_next_read_repeats_is_returned_once():
    """Also if it is the last one of the read before."""
    feed = Feed(0, 0, after_ms=None, room=1000, room_bytes=10**9)
    for read in ((0, 1, 2), (2, 3)):
        feed.put([FakeMessage(n) for n in read])

    assert [event.sequence_number for event in feed.take(9)] == [0, 1, 2, 3]


def test_after_the_first_event_of_the_start_time_older_ones_are_returned():
    """Times of later reads need not rise either."""
    feed = Feed(0, 0, after_ms=100, room=1000, room_bytes=10**9)
    for read in (((0, 50), (1, 101)), ((2, 60), (3, 200))):
        feed.put([FakeMessage(n, ms=ms) for n, ms in read])

    assert [event.sequence_number for event in feed.take(9)] == [1, 2, 3]


def test_the_newest_event_has_the_time_of_the_last_message():
    """Of those that were read together."""
    feed = Feed(0, 0, after_ms=None, room=1000, room_bytes=10**9)
    feed.put([FakeMessage(n, ms=1000 * n) for n in range(3)])

    assert feed.last_enqueued is not None
    assert feed.last_enqueued.enqueued_time == time_of(2000)


def test_the_newest_event_is_that_of_the_last_fetch_also_after_the_end_was_reached():
    """A processor that falls behind later would seem to have caught up."""
    feed = Feed(0, 0, after_ms=None, room=1000, room_bytes=10**9)
    feed.put([FakeMessage(0)])
    feed.note_end()
    feed.high = 1000
    feed.put([FakeMessage(1)])

    assert feed.last_enqueued is not None
    assert feed.last_enqueued.sequence_number == 999


def test_bytes_that_wait_are_those_of_messages_that_were_not_taken():
    """Also if a read was taken only in part."""
    feed = Feed(0, 0, after_ms=None, room=1000, room_bytes=10**9)
    feed.put([FakeMessage(n, b"x" * size) for n, size in enumerate((1, 10, 100))])
    left = []
    for _ in range(3):
        feed.take(1)
        left.append(feed._bytes)

    assert left == [110 + 2 * OVERHEAD_BYTES, 100 + OVERHEAD_BYTES, 0]


@pytest.mark.parametrize(("offset", "epoch"), [(0, 4), (3, 4), (4, None)])
def test_the_leaders_epoch_is_known_up_to_the_next_message(offset, epoch):
    """A later leader says where the log of that one ended; beyond it, it says nothing."""
    feed = Feed(0, 0, after_ms=None, room=1000, room_bytes=10**9, leader_epoch=1)
    feed.put([FakeMessage(n) for n in range(3)])
    feed.leader_epoch = 4

    assert feed.leader_epoch_before(offset) == epoch

"""Where reading begins within a stream, and which positions are refused."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.checkpoint_rules import BEFORE_FIRST_OFFSET
from eventproc.errors import SourceRejectedError
from eventproc.models import EventPosition
from eventproc.sources.rabbitmq.streams.chunk import Chunk
from eventproc.sources.rabbitmq.streams.position import Bounds, first_ms, offset_text, start_of

SOME = Bounds(low=10, high=20, newest_ms=5)
OLDEST = Chunk(10, 4, [b"a", b"b"], 2)
NEWEST = Chunk(18, 5, [b"c", b"d"], 2)


@pytest.mark.parametrize(
    ("oldest", "newest", "bounds"),
    [
        (OLDEST, NEWEST, SOME),
        (NEWEST, NEWEST, Bounds(18, 20, 5)),
        (None, NEWEST, Bounds(18, 20, 5)),  # retention deleted it, then a chunk came
        (None, None, Bounds(0, 0, None)),
        (OLDEST, None, Bounds(0, 0, None)),
    ],
)
def test_bounds_are_those_of_the_oldest_and_the_newest_chunk(oldest, newest, bounds):
    """An empty stream begins and ends at 0."""
    assert Bounds.of(oldest, newest) == bounds


@pytest.mark.parametrize(
    ("position", "start"),
    [
        (EventPosition.earliest(), 10),
        (EventPosition.latest(), 20),
        (EventPosition.from_sequence_number(14), 15),
        (EventPosition.from_sequence_number(14, is_inclusive=True), 14),
        (EventPosition.from_offset("stream:14"), 15),
        (EventPosition.from_offset("stream:14", is_inclusive=True), 14),
        (EventPosition.from_offset(BEFORE_FIRST_OFFSET), 10),
        (EventPosition.from_sequence_number(19), 20),
        (EventPosition.from_sequence_number(20, is_inclusive=True), 20),
        (EventPosition.from_sequence_number(3), 10),  # retention was faster
        (EventPosition.from_offset("stream:3"), 10),
    ],
)
def test_reading_begins_at_or_after_the_position(position, start):
    """But never before the oldest event of the stream."""
    assert start_of("0", position, SOME) == start


@pytest.mark.parametrize(
    ("position", "message"),
    [
        (EventPosition.from_sequence_number(20), "ends at offset 20.*from is 21.*created again"),
        (EventPosition.from_offset("4711"), "not one of a RabbitMQ stream"),
        (EventPosition.from_offset("kafka:14"), "not one of a RabbitMQ stream"),
        (EventPosition.from_offset("stream:x"), "not a valid offset"),
        (EventPosition.from_offset("stream:-2"), "not a valid offset"),
        (EventPosition.from_offset("stream:\u0661"), "not a valid offset"),
        (EventPosition.from_offset("stream:" + "9" * 20), "not a valid offset"),
    ],
)
def test_an_invalid_position_is_refused(position, message):
    """After the end of the stream, an offset of another protocol, or no number."""
    with pytest.raises(SourceRejectedError, match=message):
        start_of("0", position, SOME)


@given(number=st.integers(0, 2**62), low=st.integers(0, 100), size=st.integers(0, 100))
def test_reading_begins_directly_after_the_handled_event(number, low, size):
    """No event that still exists is skipped, and none is repeated."""
    bounds = Bounds(low, low + size, None)
    position = EventPosition.from_offset(offset_text(number))
    if number >= bounds.high:
        with pytest.raises(SourceRejectedError):
            start_of("0", position, bounds)
    else:
        assert start_of("0", position, bounds) == max(number + 1, low)


@pytest.mark.parametrize(
    ("microseconds", "is_inclusive", "expected"),
    [(500_999, False, 1501), (500_000, False, 1501), (500_999, True, 1501), (500_000, True, 1500)],
)
def test_a_time_becomes_the_first_millisecond_of_the_wanted_events(
    microseconds, is_inclusive, expected
):
    """Times of chunks are milliseconds; with an inclusive position, events at the time are
    wanted."""
    time = datetime(1970, 1, 1, 0, 0, 1, microseconds, tzinfo=UTC)

    assert first_ms(time, is_inclusive=is_inclusive) == expected

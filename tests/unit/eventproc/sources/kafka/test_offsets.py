"""Where reading begins within a partition, and which positions are refused."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.delivery.checkpoints import BEFORE_FIRST_OFFSET
from eventproc.errors import SourceRejectedError
from eventproc.models import EventPosition
from eventproc.sources.kafka._offsets import Bounds, last_ms_before, offset_text, start_offset

SOME = Bounds(low=10, high=20)


def test_an_offset_of_kafka_has_its_prefix():
    """As in checkpoints that are stored already."""
    assert offset_text(42) == "kafka:42"


@pytest.mark.parametrize(
    ("position", "start"),
    [
        (EventPosition.earliest(), 10),
        (EventPosition.latest(), 20),
        (EventPosition.from_sequence_number(14), 15),
        (EventPosition.from_sequence_number(14, is_inclusive=True), 14),
        (EventPosition.from_offset("kafka:14"), 15),
        (EventPosition.from_offset("kafka:14", is_inclusive=True), 14),
        (EventPosition.from_offset(BEFORE_FIRST_OFFSET), 10),
        (EventPosition.from_sequence_number(19), 20),
        (EventPosition.from_sequence_number(20, is_inclusive=True), 20),
        (EventPosition.from_sequence_number(3), 10),  # retention was faster
        (EventPosition.from_offset("kafka:3"), 10),
        (EventPosition.from_offset("kafka:15"), 16),
        (EventPosition.from_enqueued_time(datetime(2026, 1, 1, tzinfo=UTC)), 10),
    ],
)
def test_reading_begins_at_or_after_the_position(position, start):
    """But never before the oldest event; a time is looked up by the caller."""
    assert start_offset("0", position, SOME) == start


@pytest.mark.parametrize(
    ("position", "message"),
    [
        (
            EventPosition.from_sequence_number(20),
            "ends at offset 20.*from is 21.*its leader",
        ),
        (EventPosition.from_offset("4711"), "not one of Kafka .*'kafka:'"),
        (EventPosition.from_offset("queue:14"), "not one of Kafka"),
        (EventPosition.from_offset("kafka:x"), "not a valid offset of Kafka"),
        (EventPosition.from_offset("kafka:-2"), "not a valid offset"),
        (EventPosition.from_offset("kafka:\u0661"), "not a valid offset"),
        (EventPosition.from_offset("kafka:" + "9" * 20), "not a valid offset"),
        (EventPosition.from_offset("kafka:" + "9" * 5_000), "not a valid offset"),
    ],
)
def test_an_invalid_position_is_refused(position, message):
    """After the end of the partition, an offset of another protocol, or no number."""
    with pytest.raises(SourceRejectedError, match=message):
        start_offset("0", position, SOME)


@given(number=st.integers(0, 2**62), low=st.integers(0, 100), size=st.integers(0, 100))
def test_reading_begins_directly_after_the_handled_event(number, low, size):
    """No event that still exists is skipped, and none is repeated."""
    bounds = Bounds(low, low + size)
    position = EventPosition.from_offset(offset_text(number))
    if number >= bounds.high:
        with pytest.raises(SourceRejectedError):
            start_offset("0", position, bounds)
    else:
        assert start_offset("0", position, bounds) == max(number + 1, low)


@pytest.mark.parametrize(
    ("microseconds", "is_inclusive", "expected"),
    [(500_999, False, 1500), (500_000, False, 1500), (500_999, True, 1500), (500_000, True, 1499)],
)
def test_a_time_becomes_the_last_millisecond_before_the_wanted_events(
    microseconds, is_inclusive, expected
):
    """Times of Kafka are milliseconds; an inclusive position wants the events at the time, too."""
    time = datetime(1970, 1, 1, 0, 0, 1, microseconds, tzinfo=UTC)

    assert last_ms_before(time, is_inclusive=is_inclusive) == expected

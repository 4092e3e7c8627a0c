"""Where reading begins between the ends of a partition, and what is no position at all."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.checkpoint_rules import BEFORE_FIRST_OFFSET
from eventproc.errors import SourceRejectedError
from eventproc.models import EventPosition
from eventproc.sources.kafka.position import (
    Bounds,
    is_end_needed,
    last_ms_before,
    offset_text,
    start_of,
)

SOME = Bounds(low=10, high=20)


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
        (EventPosition.from_sequence_number(3), 10),  # retention was faster
        (EventPosition.from_offset("kafka:3"), 10),
    ],
)
def test_where_to_begin(position, start):
    """At or after the event named, and never below the oldest there is."""
    assert start_of("0", position, SOME) == start


@pytest.mark.parametrize(
    ("position", "said"),
    [
        (EventPosition.from_sequence_number(20), "created again"),
        (EventPosition.from_offset("4711"), "over AMQP"),
        (EventPosition.from_offset("kafka:x"), "not a valid offset"),
        (EventPosition.from_offset("kafka:-2"), "not a valid offset"),
        (EventPosition.from_offset("kafka:" + "9" * 5_000), "not a valid offset"),
    ],
)
def test_what_is_no_position_is_refused(position, said):
    """Beyond the end, AMQP's, or nonsense."""
    with pytest.raises(SourceRejectedError, match=said):
        start_of("0", position, SOME)


@pytest.mark.parametrize(
    ("position", "is_needed"),
    [
        (EventPosition.latest(), True),
        (EventPosition.from_sequence_number(20), True),
        (EventPosition.from_offset("kafka:20"), True),
        (EventPosition.from_sequence_number(19), False),
        (EventPosition.from_sequence_number(20, is_inclusive=True), False),
        (EventPosition.earliest(), False),
        (EventPosition.from_enqueued_time(datetime(2026, 1, 1, tzinfo=UTC)), False),
    ],
)
def test_when_the_end_that_the_broker_tells_does_not_suffice(position, is_needed):
    """A broker may tell an end before events that it delivers, so only reading tells."""
    assert is_end_needed("0", position, SOME) is is_needed


@given(number=st.integers(0, 2**62), low=st.integers(0, 100), size=st.integers(0, 100))
def test_reading_goes_on_right_behind_what_was_handled(number, low, size):
    """Nothing is skipped that is still there, nothing handled comes again."""
    bounds = Bounds(low, low + size)
    position = EventPosition.from_offset(offset_text(number))
    if number >= bounds.high:
        with pytest.raises(SourceRejectedError):
            start_of("0", position, bounds)
    else:
        assert start_of("0", position, bounds) == max(number + 1, low)


@pytest.mark.parametrize(
    ("microseconds", "is_inclusive", "expected"),
    [(500_999, False, 1500), (500_000, False, 1500), (500_999, True, 1500), (500_000, True, 1499)],
)
def test_a_time_is_cut_to_the_last_millisecond_that_is_not_wanted(
    microseconds, is_inclusive, expected
):
    """Kafka's times have no more; an event of a time itself is wanted where that is inclusive."""
    time = datetime(1970, 1, 1, 0, 0, 1, microseconds, tzinfo=UTC)

    assert last_ms_before(time, is_inclusive=is_inclusive) == expected

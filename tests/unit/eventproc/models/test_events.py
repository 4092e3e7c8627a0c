"""Batches that are joined are one batch."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.models import EventBatch, ReceivedEvent
from eventproc.models._events import JoinedBatch, joined
from tests.unit.eventproc._core.batches import CountingBatch

NAMES = ("sequenceNumber", "body")


def events(first, count):
    """Return events with numbers from *first* on."""
    return [
        ReceivedEvent(
            body=b"x" * (number % 5),
            sequence_number=number,
            offset=str(number),
            enqueued_time=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for number in range(first, first + count)
    ]


def parts_of(sizes, kind):
    """Return parts of these sizes, with rising numbers."""
    parts, first = [], 0
    for size in sizes:
        parts.append(kind(events(first, size)))
        first += size
    return parts


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    start=st.none() | st.integers(-30, 30),
    stop=st.none() | st.integers(-30, 30),
)
def test_a_joined_batch_is_the_sequence_of_its_events(sizes, start, stop):
    """Element, iteration, slices of slices, bytes and columns; no slice makes an event."""
    parts = parts_of(sizes, CountingBatch)
    whole, expected = JoinedBatch(parts), events(0, sum(sizes))
    part = whole[start:stop]
    made = [part.made for part in parts]
    numbers = [event.sequence_number for event in expected[start:stop]]

    assert made == [[] for _ in sizes]
    assert len(whole) == len(expected)
    assert [whole[at] for at in range(len(whole))] == list(whole) == expected
    assert [event.sequence_number for event in part] == numbers
    assert list(part[1:]) == expected[start:stop][1:]
    assert part.body_byte_count == sum(len(event.body) for event in expected[start:stop])
    if numbers:
        assert part.columns(NAMES, "0").column("sequenceNumber").to_pylist() == numbers


def test_a_joined_batch_has_no_slices_with_a_step_and_ends():
    """As any batch."""
    whole = JoinedBatch(parts_of([2, 3], CountingBatch))

    with pytest.raises(ValueError, match="step"):
        whole[::2]
    with pytest.raises(IndexError):
        whole[5]


@pytest.mark.parametrize("kind", [list, CountingBatch])
def test_parts_become_one_sequence_of_their_kind(kind):
    """One part stays as it is."""
    one, more = parts_of([4], kind), parts_of([4, 2, 1], kind)

    assert joined(one) is one[0]
    assert isinstance(joined(more), EventBatch) is (kind is CountingBatch)
    assert list(joined(more)) == events(0, 7)

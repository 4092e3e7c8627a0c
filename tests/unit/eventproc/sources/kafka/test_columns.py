"""Kafka messages as columns: the same values as those of their events."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventproc.columns import COLUMNS, to_columns
from eventproc.sources.kafka import _columns as module
from eventproc.sources.kafka._batch import KafkaBatch
from eventproc.sources.kafka._columns import ColumnBatch
from tests.unit.eventproc.sources.kafka.messages import FakeMessage
from tests.unit.eventproc.sources.kafka.test_batch import messages

NAMES = st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True)


@given(messages(), NAMES, st.slices(20))
@example([FakeMessage(0), FakeMessage(1)], ["sequenceNumber", "offset"], slice(1))
def test_columns_of_messages_are_those_of_their_events(found, names, rows):
    """Of all messages, and of a slice, also an empty one."""
    batch, events = ColumnBatch.of(found), list(KafkaBatch.of(found))

    assert list(batch) == events
    assert [batch[row] for row in range(len(events))] == events
    assert batch.columns(names, "7").equals(to_columns(events, names, "7"))
    assert list(batch[rows]) == events[rows]
    assert batch[rows].columns(names, "7").equals(to_columns(events[rows], names, "7"))
    assert batch.body_byte_count == sum(len(event.body) for event in events)
    assert batch[rows].body_byte_count == sum(len(event.body) for event in events[rows])


@given(messages(), st.lists(st.integers(0, 20), max_size=3), st.lists(st.booleans(), min_size=5))
def test_batches_that_follow_one_another_are_joined(found, cuts, are_packed):
    """Also with one that was read before anybody asked for columns."""
    ends = [0, *sorted(cuts), len(found)]
    parts = [
        (ColumnBatch if is_packed else KafkaBatch).of(found[begin:end])
        for begin, end, is_packed in zip(ends, ends[1:], are_packed, strict=False)
        if found[begin:end]
    ]
    whole = ColumnBatch.joined(parts)

    assert isinstance(whole, ColumnBatch)
    assert list(whole) == list(KafkaBatch.of(found))
    assert whole.columns(["body", "sequenceNumber"], "7").equals(
        ColumnBatch.of(found).columns(["body", "sequenceNumber"], "7")
    )


@pytest.mark.parametrize("rows", [slice(begin, begin + 2) for begin in range(5)])
def test_the_bytes_of_a_slice_are_those_of_its_bodies(rows):
    """A feed that gives a part of a batch away counts them."""
    bodies = [b"", b"1", b"22", None, b"4444"]
    batch = ColumnBatch.of([FakeMessage(n, body) for n, body in enumerate(bodies)])

    assert batch[rows].body_byte_count == sum(len(body or b"") for body in bodies[rows])


@pytest.mark.parametrize("names", [["body"], ["offset", "body", "enqueuedTime"]])
def test_a_batch_of_more_bytes_than_an_array_can_hold_keeps_its_events(monkeypatch, names):
    """The call with its columns fails then, and is repeated with less."""
    monkeypatch.setattr(module, "BYTES_MAX", 11)
    found = [FakeMessage(n, b"%03d" % n) for n in range(4)]
    whole = ColumnBatch.joined([ColumnBatch.of(found[:2]), ColumnBatch.of(found[2:])])

    assert not isinstance(whole, ColumnBatch)
    assert list(whole) == list(KafkaBatch.of(found))
    assert whole.columns(names, "7").equals(to_columns(list(whole), names, "7"))

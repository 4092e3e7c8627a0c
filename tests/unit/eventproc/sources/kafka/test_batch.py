"""Kafka messages as a batch: the same events, and the same columns."""

from itertools import accumulate

from hypothesis import example, given
from hypothesis import strategies as st

from eventproc.columns import COLUMNS, to_columns
from eventproc.sources.kafka.batch import KafkaBatch
from eventproc.sources.kafka.event import KafkaEvent
from tests.unit.eventproc.sources.kafka.messages import FakeMessage

BYTES = st.none() | st.binary(max_size=5)
MESSAGES = st.lists(
    st.builds(
        FakeMessage,
        st.just(0),
        BYTES,
        key=BYTES,
        headers=st.none() | st.lists(st.tuples(st.text(max_size=3), BYTES), max_size=3),
        ms=st.integers(-(2**63), 2**63 - 1),
    ),
    min_size=1,
    max_size=20,
)


NAMES = st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True)


@given(MESSAGES, NAMES, st.lists(st.integers(1, 2), min_size=20, max_size=20))
@example([FakeMessage(0), FakeMessage(0)], ["sequenceNumber", "offset"], [1] * 20)
def test_columns_of_messages_are_those_of_their_events(messages, names, steps):
    """Tombstones, repeated headers, keys that are not text, and times out of range included.

    Offsets have gaps, as in a compacted topic, or none.
    """
    for message, offset in zip(messages, accumulate(steps), strict=False):
        message._offset = offset
    batch, events = KafkaBatch(messages), [KafkaEvent(message) for message in messages]

    assert list(batch) == events
    assert batch.columns(names, "7").equals(to_columns(events, names, "7"))
    assert list(batch[1:]) == events[1:]
    assert batch[1:].columns(names, "7").equals(to_columns(events[1:], names, "7"))
    assert batch.body_byte_count == sum(len(event.body) for event in events)


@given(NAMES)
def test_no_messages_give_columns_without_rows(names):
    """An empty slice of a batch has its columns."""
    assert KafkaBatch([]).columns(names, "7").equals(to_columns([], names, "7"))

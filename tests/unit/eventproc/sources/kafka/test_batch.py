"""Kafka messages as a batch: their events, in whatever way they are taken out."""

import gc
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.sources.kafka import _batch as module
from eventproc.sources.kafka._batch import KafkaBatch
from eventproc.sources.kafka._event import HEADERS_UNREADABLE
from tests.unit.eventproc.sources.kafka.messages import FakeMessage, event_of

BYTES = st.none() | st.binary(max_size=5)


@st.composite
def messages(draw, *, max_size=20):
    """Successive messages of a partition; their offsets have gaps, as in a compacted topic, or not.

    Tombstones, repeated headers, keys that are not text, and times out of range included.
    """
    found: list[FakeMessage] = draw(
        st.lists(
            st.builds(
                FakeMessage,
                st.just(0),
                BYTES,
                key=BYTES,
                headers=st.none() | st.lists(st.tuples(st.text(max_size=3), BYTES), max_size=3),
                ms=st.integers(-(2**63), 2**63 - 1),
            ),
            min_size=1,
            max_size=max_size,
        )
    )
    steps = draw(st.lists(st.sampled_from([1, 1, 2]), min_size=max_size, max_size=max_size))
    for message, offset in zip(found, accumulate(steps), strict=False):
        message._offset = offset
    return found


def alone(message):
    """Return the event of a message by itself."""
    return event_of(
        message._offset,
        message._value,
        key=message._key,
        headers=message._headers,
        ms=message._ms,
    )


@given(messages(), st.slices(20))
def test_the_events_of_a_batch_are_those_of_its_messages(found, rows):
    """All of them, one, or a slice."""
    batch, events = KafkaBatch.of(found), [alone(message) for message in found]

    assert list(batch) == events
    assert [batch[row] for row in range(-len(events), len(events))] == events * 2
    assert list(batch[rows]) == events[rows]
    assert batch.body_byte_count == sum(len(event.body) for event in events)
    with pytest.raises(IndexError):
        batch[len(events)]


@given(messages())
def test_the_first_and_the_last_event_are_made_once(found):
    """A processor reads both several times, whatever the size of the batch."""
    batch = KafkaBatch.of(found)

    assert batch[0] is batch[0] is batch[-len(found)]
    assert batch[-1] is batch[-1] is batch[len(found) - 1]


@given(messages(), st.lists(st.integers(0, 20), max_size=3))
def test_batches_that_follow_one_another_are_joined(found, cuts):
    """Wherever one ends and the next begins."""
    ends = [0, *sorted(cuts), len(found)]
    parts = [KafkaBatch.of(found[a:b]) for a, b in pairwise(ends) if found[a:b]]

    assert list(KafkaBatch.joined(parts)) == list(KafkaBatch.of(found))


def test_more_events_than_are_made_at_a_time_keep_their_own_parts(monkeypatch):
    """Of each event, in the order in which they were read."""
    monkeypatch.setattr(module, "EVENTS_AT_ONCE", 3)
    found = [
        FakeMessage(n, b"%d" % n, key=b"k%d" % n, headers=[("n", b"%d" % n)], ms=n)
        for n in range(7, 15)
    ]

    assert list(KafkaBatch.of(found)) == [alone(message) for message in found]


def test_an_event_that_is_kept_does_not_keep_the_values_of_its_batch():
    """A handler that keeps one of a thousand large events needs the memory of one."""
    values = [bytes([n]) * 100 for n in range(10)]
    found: Any = [FakeMessage(n, value) for n, value in enumerate(values)]
    kept = next(iter(KafkaBatch.of(found)))

    reachable, queue = {id(kept)}, [kept]
    while queue:
        for other in gc.get_referents(queue.pop()):
            if id(other) not in reachable and not isinstance(other, type):
                reachable.add(id(other))
                queue.append(other)

    assert [id(value) in reachable for value in values] == [True] + 9 * [False]


def test_a_waiting_batch_has_no_object_for_each_message_that_the_collector_visits():
    """Otherwise each collection visits all messages that wait for the handler."""
    batch = KafkaBatch.of([FakeMessage(n, b"x", key=b"k", ms=n) for n in range(1000)])

    tracked, queue = 0, [batch]
    while queue:
        for other in gc.get_referents(queue.pop()):
            if gc.is_tracked(other) and not isinstance(other, type):
                tracked += 1
                queue.append(other)

    assert tracked < 10


class Odd(FakeMessage):
    """A message with a header whose name is not UTF-8: the client can be asked for them once."""

    was_asked = False

    def headers(self):
        if self._headers != "odd":
            return self._headers
        assert not self.was_asked, "the client would return null pointers"
        self.was_asked = True
        raise SystemError("headers returned a result with an exception set")


def test_a_header_that_the_client_cannot_return_costs_the_headers_of_its_message_alone():
    """An error would end the reading of all partitions, again at each attempt."""
    headers = ["odd", [("a", b"1")], "odd", "odd", None, "odd"]
    events = list(KafkaBatch.of([Odd(n, headers=each) for n, each in enumerate(headers)]))

    assert [event.sequence_number for event in events] == [0, 1, 2, 3, 4, 5]
    assert [event.properties for event in events] == [{}, {"a": "1"}, {}, {}, {}, {}]
    assert [HEADERS_UNREADABLE in event.system_properties for event in events] == [
        each == "odd" for each in headers
    ]

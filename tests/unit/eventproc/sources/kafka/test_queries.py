"""Queries of the broker: the newest event of a partition is found by reading."""

from typing import cast

import pytest

from eventproc.errors import SourceUnavailableError
from eventproc.sources.kafka import _queries as queries
from eventproc.sources.kafka._client import Consumer
from eventproc.sources.kafka._offsets import Bounds
from eventproc.sources.kafka._queries import properties_question
from tests.unit.eventproc.sources.kafka.messages import FakeMessage, Fault

TIMEOUT_S = 1.0


class FakeConsumer:
    """One partition whose events have these offsets, and whose end is at *high*."""

    def __init__(self, offsets, high, *, chunk=100, has_end=True, grows_by=0):
        self.offsets = list(offsets)
        self.high = high
        self.chunk = chunk
        self.has_end = has_end
        self.grows_by = grows_by
        self.position = 0
        self.is_assigned = False

    def bounds(self, partition, timeout_s):
        return Bounds(0, self.high)

    def assign(self, partition, offset):
        self.position, self.is_assigned = offset, True

    def unassign(self, partition):
        self.is_assigned = False

    def read(self, wait_s):
        offsets = [offset for offset in self.offsets if offset >= self.position][: self.chunk]
        end = self.offsets[-1] + 1
        self.offsets += range(end, end + self.grows_by)
        if offsets:
            self.position = offsets[-1] + 1
            return [FakeMessage(offset) for offset in offsets]
        return [FakeMessage(self.high, error=Fault("_PARTITION_EOF"))] if self.has_end else []


def newest(consumer):
    (properties,) = properties_question([0])(cast("Consumer", consumer), TIMEOUT_S)
    assert not consumer.is_assigned
    assert properties.last_enqueued_offset == f"kafka:{properties.last_enqueued_sequence_number}"
    return properties.last_enqueued_sequence_number


@pytest.mark.parametrize("chunk", [1, 3, 100])
@pytest.mark.parametrize("high", [4, 5, 10, 200])
def test_the_newest_event_is_before_marks_of_transactions(high, chunk):
    """As many offsets at the end as there are belong to no event."""
    assert newest(FakeConsumer(range(4), high, chunk=chunk)) == 3


def test_a_query_ends_although_events_arrive_faster_than_they_are_read():
    """The event is one that was the newest meanwhile."""
    assert newest(FakeConsumer(range(10), 10, chunk=5, grows_by=50)) >= 9


def test_an_end_that_reading_does_not_reach_raises(monkeypatch):
    """The query may be repeated."""
    monkeypatch.setattr(queries, "SLICE_S", 0.005)
    consumer = FakeConsumer(range(3), 10, has_end=False)

    with pytest.raises(SourceUnavailableError, match=r"partition 0 .*reports at offset 10"):
        newest(consumer)

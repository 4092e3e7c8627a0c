"""Queries of the broker: the end of a partition is where reading ends, whatever is reported."""

from datetime import UTC, datetime
from typing import cast

import pytest

from eventproc.errors import SourceRejectedError, SourceUnavailableError
from eventproc.models import EventPosition
from eventproc.sources.kafka import _queries as asker
from eventproc.sources.kafka._client import Consumer
from eventproc.sources.kafka._offsets import Bounds
from eventproc.sources.kafka._queries import end_question, is_end_needed, properties_question
from tests.unit.eventproc.sources.kafka.messages import FakeMessage, Fault

TIMEOUT_S = 1.0
SOME = Bounds(low=10, high=20)


class FakeConsumer:
    """One partition with *count* events, and a broker that reports another end."""

    def __init__(self, count, reported, *, chunk=100, reports_end=True, grows_by=0):
        self.count = count
        self.reported = reported
        self.chunk = chunk
        self.reports_end = reports_end
        self.grows_by = grows_by
        self.position = 0
        self.is_assigned = False

    def bounds(self, partition, timeout_s):
        return Bounds(0, self.reported)

    def assign(self, partition, offset):
        self.position, self.is_assigned = offset, True

    def unassign(self, partition):
        self.is_assigned = False

    def high(self, partition):
        return self.count

    def read(self, wait_s):
        end = min(self.count, self.position + self.chunk)
        self.count += self.grows_by
        messages = [FakeMessage(n) for n in range(self.position, end)]
        self.position = end
        if not messages and self.reports_end:
            return [FakeMessage(end, error=Fault("_PARTITION_EOF"))]
        return messages


def ask(question, consumer):
    return question(cast("Consumer", consumer), TIMEOUT_S)


@pytest.mark.parametrize("reported", [0, 1, 5, 10])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_the_end_of_a_partition_is_found_by_reading(reported, chunk):
    """Whether the broker reports it, the beginning of the last batch, or 0."""
    consumer = FakeConsumer(10, reported, chunk=chunk)

    assert ask(end_question(0, Bounds(0, reported)), consumer) == 10
    assert not consumer.is_assigned


def test_the_newest_event_is_the_last_one_delivered():
    """Not the one before the end that the broker reports."""
    (properties,) = ask(properties_question([0]), FakeConsumer(10, 1, chunk=4))

    assert properties.last_enqueued_sequence_number == 9
    assert properties.last_enqueued_offset == "kafka:9"
    assert not properties.is_empty


def test_a_query_ends_although_events_arrive_faster_than_they_are_read(monkeypatch):
    """The end is one that the partition had meanwhile."""
    monkeypatch.setattr(asker, "SLICE_S", 0.005)
    consumer = FakeConsumer(10, 10, chunk=5, grows_by=50)

    assert ask(end_question(0, Bounds(0, 10)), consumer) >= 10


def test_an_end_that_reading_does_not_reach_raises(monkeypatch):
    """The query may be repeated."""
    monkeypatch.setattr(asker, "SLICE_S", 0.005)
    consumer = FakeConsumer(3, 10, reports_end=False)

    with pytest.raises(SourceUnavailableError, match=r"offset 9, and the broker reports 10"):
        ask(end_question(0, Bounds(0, 10)), consumer)


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
def test_the_end_must_be_read_if_reading_begins_at_it(position, is_needed):
    """A broker may report an end before events that it delivers, so only reading shows it."""
    assert is_end_needed("0", position, SOME) is is_needed


def test_an_offset_of_event_hubs_is_refused():
    """The message names the prefix of Kafka's."""
    with pytest.raises(SourceRejectedError, match=r"not one of Kafka .*'kafka:'"):
        is_end_needed("0", EventPosition.from_offset("4711"), SOME)

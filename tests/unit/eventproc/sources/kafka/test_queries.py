"""Questions to the broker: the end of a partition is where reading ends, whatever is told."""

from typing import cast

import pytest

from eventproc.errors import SourceUnavailableError
from eventproc.sources.kafka import queries as asker
from eventproc.sources.kafka.client import Consumer
from eventproc.sources.kafka.position import Bounds
from eventproc.sources.kafka.queries import end_question, properties_question
from tests.unit.eventproc.sources.kafka.messages import FakeMessage, Fault

TIMEOUT_S = 1.0


class FakeConsumer:
    """One partition with so many events, and a broker that tells another end."""

    def __init__(self, count, told, *, chunk=100, says_end=True, grows_by=0):
        self.count = count
        self.told = told
        self.chunk = chunk
        self.says_end = says_end
        self.grows_by = grows_by
        self.position = 0
        self.is_assigned = False

    def bounds(self, partition, timeout_s):
        return Bounds(0, self.told)

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
        if not messages and self.says_end:
            return [FakeMessage(end, error=Fault("_PARTITION_EOF"))]
        return messages


def ask(question, consumer):
    return question(cast("Consumer", consumer), TIMEOUT_S)


@pytest.mark.parametrize("told", [0, 1, 5, 10])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_the_end_is_where_reading_ends(told, chunk):
    """Be it told rightly, as the beginning of the last batch, or not at all."""
    consumer = FakeConsumer(10, told, chunk=chunk)

    assert ask(end_question(0, Bounds(0, told)), consumer) == 10
    assert not consumer.is_assigned


def test_the_newest_event_is_the_last_that_is_delivered():
    """Not the one at the end that the broker tells."""
    (properties,) = ask(properties_question([0]), FakeConsumer(10, 1, chunk=4))

    assert properties.last_enqueued_sequence_number == 9
    assert properties.last_enqueued_offset == "kafka:9"
    assert not properties.is_empty


def test_an_end_that_moves_is_told_as_it_was(monkeypatch):
    """Where events arrive faster than they are read, the question has an end nevertheless."""
    monkeypatch.setattr(asker, "SLICE_S", 0.005)
    consumer = FakeConsumer(10, 10, chunk=5, grows_by=50)

    assert ask(end_question(0, Bounds(0, 10)), consumer) >= 10


def test_an_end_that_is_not_reached_is_unknown(monkeypatch):
    """Nothing is concluded from silence: the question is asked again."""
    monkeypatch.setattr(asker, "SLICE_S", 0.005)
    consumer = FakeConsumer(3, 10, says_end=False)

    with pytest.raises(SourceUnavailableError, match=r"offset 9, and the broker reports 10"):
        ask(end_question(0, Bounds(0, 10)), consumer)

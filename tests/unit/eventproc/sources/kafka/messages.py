"""Fakes of the messages that the Kafka client returns."""

from dataclasses import dataclass

from eventproc.sources.kafka._batch import KafkaBatch


@dataclass(frozen=True, eq=False)
class Fault:
    """An error of a message. As the client's, it cannot be compared with anything else."""

    code: str
    text: str = "for this reason"

    def __eq__(self, other):
        return self.code == other.code

    def __hash__(self):
        return hash(self.code)

    def name(self):
        return self.code

    def str(self):
        return self.text


class FakeMessage:
    """As much of a message as the source reads."""

    def __init__(
        self,
        offset,
        value=b"x",
        *,
        partition=0,
        key=None,
        headers=None,
        ms=0,
        error=None,
        leader_epoch=None,
    ):
        self._offset, self._value, self._partition = offset, value, partition
        self._key, self._headers, self._ms, self._error = key, headers, ms, error
        self._leader_epoch = leader_epoch

    def error(self):
        return self._error

    def partition(self):
        return self._partition

    def offset(self):
        return self._offset

    def key(self):
        return self._key

    def value(self):
        return self._value

    def headers(self):
        return self._headers

    def leader_epoch(self):
        return self._leader_epoch

    def timestamp(self):
        return (1, self._ms)

    def __len__(self):
        return len(self._value or b"")


def event_of(*args, **fields):
    """Return the event of one message."""
    (event,) = KafkaBatch.of([FakeMessage(*args, **fields)])
    return event

"""Messages of one partition as a batch of events.

Rule: a batch keeps no message of the client, and no object for each event: Python's garbage
collector visits whatever it tracks again and again while it waits
(``docs/decisions/0102-kafka-messages-are-taken-apart-at-once.md``).
"""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, overload

from eventproc.models import EventBatch, ReceivedEvent
from eventproc.sources.kafka._event import Details, Headers, Message, events_of

if TYPE_CHECKING:
    import pyarrow as pa

EVENTS_AT_ONCE: Final = 128
"""How many events are made at a time. Each keeps the details of all of them, but only its own
value: an event that a handler keeps does not keep the values of its batch."""


class KafkaBatch(EventBatch):
    """Events that are made when they are read."""

    __slots__ = ("_ends", "_values", "details")

    def __init__(self, values: Sequence[bytes | None], details: Details) -> None:
        """Keep these, which nobody modifies later."""
        self._values = values
        self.details = details
        self._ends: dict[int, ReceivedEvent] = {}
        """The first and the last event by row, once they were read: a processor reads each of them
        several times."""

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "KafkaBatch":
        """Return a batch of these messages."""
        return cls(list(map(type(messages[0]).value, messages)), Details.of(messages))

    def __len__(self) -> int:
        return len(self.details.keys)

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "KafkaBatch": ...
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | KafkaBatch":
        if isinstance(index, slice):
            return self._part(index)
        rows = range(len(self))
        row = rows[index]
        event = self._ends.get(row)
        if event is None:
            event = self._events(slice(row, row + 1))[0]
            if row in {0, rows[-1]}:
                self._ends[row] = event
        return event

    def __iter__(self) -> Iterator[ReceivedEvent]:
        starts = range(0, len(self), EVENTS_AT_ONCE)
        return chain.from_iterable(self._events(slice(at, at + EVENTS_AT_ONCE)) for at in starts)

    def _part(self, rows: slice) -> "KafkaBatch":
        return KafkaBatch(self._values[rows], self.details.part(rows))

    def _events(self, rows: slice) -> Sequence[ReceivedEvent]:
        return events_of(self.values(rows), self.details.part(rows))

    def values(self, rows: slice) -> Sequence[bytes | None]:
        """Return the values of some messages."""
        return self._values[rows]

    @property
    def body_byte_count(self) -> int:
        return sum(map(len, filter(None, self._values)))

    def columns(self, names: Sequence[str], partition_id: str) -> "pa.RecordBatch":
        from eventproc.columns import to_columns  # noqa: PLC0415 - it is an extra

        return to_columns(tuple(self), names, partition_id)

    @classmethod
    def joined(cls, batches: Sequence["KafkaBatch"]) -> "KafkaBatch":
        """Return one batch of these, which follow one another."""
        return KafkaBatch(
            list(chain.from_iterable(batch.values(slice(None)) for batch in batches)),
            joined_details([batch.details for batch in batches]),
        )


def joined_details(parts: Sequence[Details]) -> Details:
    """Return the details of messages that follow one another."""
    times_ms: list[int] = []
    keys: list[bytes | None] = []
    headers: list[Headers] = []
    for part in parts:
        times_ms += part.times_ms
        keys += part.keys
        headers += part.headers
    return Details(_joined_numbers([part.numbers for part in parts]), times_ms, keys, headers)


def _joined_numbers(parts: Sequence[Sequence[int]]) -> Sequence[int]:
    are_ranges = all(isinstance(part, range) for part in parts)
    if are_ranges and all(one[-1] + 1 == other[0] for one, other in pairwise(parts)):
        return range(parts[0][0], parts[-1][-1] + 1)
    return list(chain.from_iterable(parts))

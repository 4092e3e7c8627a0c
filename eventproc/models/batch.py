"""Batches whose events are decoded only when they are read."""

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, overload

from eventproc.models.events import ReceivedEvent

if TYPE_CHECKING:
    import pyarrow as pa


class EventBatch(Sequence[ReceivedEvent]):
    """Received events of one partition, in order, from which columns are built without objects.

    An element is made when it is read. A slice is a batch again, and its cost does not depend on
    its length.
    """

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "EventBatch": ...
    @abstractmethod
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | EventBatch":
        """Return an event, or a batch of some; a slice must be without a step."""

    @property
    @abstractmethod
    def body_byte_count(self) -> int:
        """The bytes of all bodies together."""

    @abstractmethod
    def columns(self, names: Sequence[str], partition_id: str) -> "pa.RecordBatch":
        """Return these columns, a row for each event; see ``eventproc.columns``.

        Raises:
            SourceRejectedError: an event cannot be decoded.
        """


def body_bytes(events: Sequence[ReceivedEvent]) -> int:
    """Return the bytes of all bodies together; those of a batch are not decoded for it."""
    if isinstance(events, EventBatch):
        return events.body_byte_count
    return sum(len(event.body) for event in events)


class JoinedBatch(EventBatch):
    """Batches that were received one after another, as one."""

    def __init__(self, parts: Sequence[EventBatch]) -> None:
        """Join them in this order; none is empty."""
        self._parts = parts
        self._ends = list(accumulate(map(len, parts)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "JoinedBatch": ...
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | JoinedBatch":
        rows = range(len(self))[index]
        if isinstance(rows, int):
            at = bisect_right(self._ends, rows)
            return self._parts[at][rows - self._ends[at] + len(self._parts[at])]
        if rows.step != 1:
            raise ValueError("a batch has no slices with a step")
        parts = []
        for part, end in zip(self._parts, self._ends, strict=True):
            begin = end - len(part)
            wanted = part[max(rows.start - begin, 0) : max(rows.stop - begin, 0)]
            if len(wanted):
                parts.append(wanted)
        return JoinedBatch(parts)

    def __iter__(self) -> Iterator[ReceivedEvent]:
        return chain.from_iterable(self._parts)

    @property
    def body_byte_count(self) -> int:
        """The bytes of all bodies together."""
        return sum(part.body_byte_count for part in self._parts)

    def columns(self, names: Sequence[str], partition_id: str) -> "pa.RecordBatch":
        """Return these columns; those of the parts are copied."""
        import pyarrow as pa  # noqa: PLC0415 - the extra ``columns`` installs it

        columns = [part.columns(names, partition_id) for part in self._parts]
        return pa.concat_batches(columns)


def joined(parts: Sequence[Sequence[ReceivedEvent]]) -> Sequence[ReceivedEvent]:
    """Return events that one link delivered one after another as one sequence."""
    if len(parts) == 1:
        return parts[0]
    batches = [part for part in parts if isinstance(part, EventBatch)]
    return JoinedBatch(batches) if len(batches) == len(parts) else list(chain(*parts))

"""Calls ``process_columns`` of a handler, with all columns of the rows as one batch of events."""

from collections.abc import Iterator, Sequence
from typing import overload

import pyarrow as pa
import pyarrow.compute as pc

from eventproc._delivery.handler import PartitionContext, PartitionHandler
from eventproc.models import CloseReason, EventBatch, ReceivedEvent
from spark_integration._sink.events import batch_of, events_of


class RowBatch(EventBatch):
    """The rows of an Arrow batch; each becomes an event only when it is read."""

    def __init__(self, rows: pa.RecordBatch, numbers: Sequence[int]) -> None:
        """*numbers* are the sequence numbers of the rows."""
        self.rows = rows
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "RowBatch": ...
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | RowBatch":
        places = range(len(self))[index]
        if isinstance(places, int):
            return next(iter(self[places : places + 1]))
        if places.step != 1:
            raise ValueError("a batch has no slices with a step")
        rows = self.rows.slice(places.start, len(places))
        return RowBatch(rows, self._numbers[places.start : places.stop])

    def __iter__(self) -> Iterator[ReceivedEvent]:
        return iter(events_of(self.rows, self._numbers))

    @property
    def body_byte_count(self) -> int:
        """The bytes of all bodies together."""
        sizes: Sequence[int | None] = pc.binary_length(self.rows.column("body")).to_pylist()
        return sum(filter(None, sizes))

    def columns(self, names: Sequence[str], partition_id: str) -> pa.RecordBatch:  # noqa: ARG002 - the rows have it
        """Return these columns of the rows."""
        return self.rows.select(list(names))


class ColumnHandler(PartitionHandler):
    """Passes rows to a handler as Arrow columns, including columns that the query added."""

    def __init__(self, handler: PartitionHandler) -> None:
        self._handler = handler

    @property
    def takes_columns(self) -> bool:
        """Whether failed calls are tried again in halves."""
        return True

    async def initialize(self, context: PartitionContext) -> None:
        """Pass it on."""
        await self._handler.initialize(context)

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Call ``process_columns``."""
        # What a failed call has left is some of its rows: those that a ``RowError`` named.
        rows = events.rows if isinstance(events, RowBatch) else batch_of(events)
        await self._handler.process_columns(context, rows)

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        """Pass it on."""
        await self._handler.process_error(context, error)

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Pass it on."""
        await self._handler.close(context, reason)

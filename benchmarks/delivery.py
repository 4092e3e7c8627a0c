"""What the delivery of events costs: from a receiver to the handler and to the progress.

    python benchmarks/delivery.py
    python benchmarks/delivery.py --quick

The receiver has batches ready whose columns are built already, and the handler does nothing, so
neither decoding nor work is measured. Each line is one size of batches, and the CPU time that
an event costs; for comparison the same events in ``process_events`` and ``process_event``.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, overload

import pyarrow as pa

from benchmarks._rows import Row, options, print_rows
from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    EventPosition,
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    PartitionReceiver,
    ReceivedEvent,
)
from eventproc.columns import to_columns
from eventproc.models import EventBatch, LastEnqueued
from eventproc.sources.memory import MemoryEventSource, MemoryHub

EVENTS: Final = 1_000_000
"""For batches of columns; objects take a tenth of that."""

SIZES: Final[tuple[int, ...]] = (300, 1_000, 10_000)
BODY: Final = b"x" * 100
NOW: Final = datetime.now(UTC)
ROUNDS: Final = 3


def event_at(number: int) -> ReceivedEvent:
    return ReceivedEvent(body=BODY, sequence_number=number, offset=str(number), enqueued_time=NOW)


class Ready(EventBatch):
    """Events that are made when they are read, and columns that are built already."""

    def __init__(self, first: int, columns: pa.RecordBatch) -> None:
        self._first = first
        self._columns = columns

    def __len__(self) -> int:
        return int(self._columns.num_rows)

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "Ready": ...
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | Ready":
        """Return an event, or a batch of some."""
        if isinstance(index, slice):
            begin, end, _ = index.indices(len(self))
            return Ready(self._first + begin, self._columns.slice(begin, max(end - begin, 0)))
        return event_at(self._first + range(len(self))[index])

    @property
    def body_byte_count(self) -> int:
        """The bytes of all bodies together."""
        return len(BODY) * len(self)

    def columns(self, names: Sequence[str], partition_id: str) -> pa.RecordBatch:  # noqa: ARG002
        """Return the columns."""
        return self._columns


class ReadyReceiver(PartitionReceiver):
    """Returns batches that wait, and notes the CPU time of the first call and the last."""

    def __init__(self, batches: Iterator[Sequence[ReceivedEvent]]) -> None:
        self._batches = batches
        self.begun_s = 0.0
        self.ended_s = 0.0

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:  # noqa: ARG002
        """Return the next batch."""
        self.begun_s = self.begun_s or time.process_time()
        batch = next(self._batches, ())
        if not batch:
            self.ended_s = self.ended_s or time.process_time()
            await asyncio.sleep(wait_max.total_seconds())
        return batch

    async def close(self) -> None:
        """Do nothing."""

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        """Not known."""
        return None


class ReadySource(MemoryEventSource):
    """Opens that receiver."""

    def __init__(self, receiver: ReadyReceiver) -> None:
        super().__init__(MemoryHub(partition_count=1))
        self._receiver = receiver

    async def open_receiver(
        self, _consumer_group: str, _partition_id: str, _position: EventPosition
    ) -> PartitionReceiver:
        """Return it."""
        return self._receiver


class Columns(PartitionHandler):
    """Does nothing with columns."""

    async def process_columns(self, context: PartitionContext, columns: pa.RecordBatch) -> None:
        """Return."""


class Batches(PartitionHandler):
    """Does nothing with events."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Return."""


class Events(PartitionHandler):
    """Does nothing with each event."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Return."""


async def measured_us(
    handler: type[PartitionHandler], batches: Sequence[Sequence[ReceivedEvent]]
) -> float:
    """Return the CPU time of an event, in microseconds."""
    receiver = ReadyReceiver(iter(batches))
    processor = EventProcessor(
        source=ReadySource(receiver),
        store=MemoryCheckpointStore(MemoryAccount()),
        handler=handler,
        config=EventProcessorConfig(batch_size_max=SIZES[-1]),
    )
    async with processor:
        while not receiver.ended_s:  # noqa: ASYNC110 - a time
            await asyncio.sleep(0.01)
    return (receiver.ended_s - receiver.begun_s) / sum(map(len, batches)) * 1e6


def main() -> None:
    given = options(__doc__).parse_args()
    total, sizes, rounds = EVENTS, SIZES, ROUNDS
    if given.quick:
        total, sizes, rounds = EVENTS // 100, SIZES[:1], 1
    rows: list[Row] = []
    for handler, count in ((Columns, total), (Batches, total // 10), (Events, total // 10)):
        for size in sizes:
            firsts = range(0, max(count, size), size)
            batches: list[Sequence[ReceivedEvent]]
            if handler is Columns:
                events = [event_at(number) for number in range(size)]
                columns = to_columns(events, handler.columns, "0")
                batches = [Ready(first, columns) for first in firsts]
            else:
                batches = [[event_at(first + n) for n in range(size)] for first in firsts]
            costs = [asyncio.run(measured_us(handler, batches)) for _ in range(rounds)]
            rows.append(
                {
                    "handler": handler.__name__,
                    "batch": size,
                    "us_per_event": round(min(costs), 4),
                }
            )
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()

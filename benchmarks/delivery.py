"""What the delivery of events costs: from a receiver to the handler and to the progress.

    python benchmarks/delivery.py
    python benchmarks/delivery.py --quick

The receiver has batches ready whose columns are built already, and the handler does nothing, so
neither decoding nor work is measured. Each line is one size of batches, and the CPU time that
an event costs; for comparison the same events in ``process_events`` and ``process_event``.

The second table is of key lanes, with handlers that wait: 8 partitions, and a key for each event.
*Bare* is a task of asyncio for each event that waits as long, as many at once. The two take turns,
and *times bare* is the median of their ratios.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
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

PARTITIONS: Final = 8
WAITS: Final[Sequence[tuple[int, float]]] = (
    (1, 0.001),
    (20, 0.001),
    (200, 0.001),
    (1_000, 0.001),
    (20, 0.05),
    (200, 0.05),
)
"""Lanes of each partition, and how long a handler waits in them."""


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


class Waiting(PartitionHandler):
    """Waits for each event."""

    def __init__(self, waits: "Waits") -> None:
        self._waits = waits

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:  # noqa: ARG002
        """Wait."""
        await self._waits.wait()


class Waits:
    """Events that each wait for a time: in the key lanes of a processor, and in bare tasks."""

    def __init__(self, lanes: int, wait_s: float, events: int) -> None:
        self._lanes = lanes
        self._wait_s = wait_s
        self._events = events
        self._left = 0
        self._done = asyncio.Event()

    async def row(self, rounds: int) -> Row:
        """Return what both cost, with the pairs in one run."""
        hub = MemoryHub(partition_count=PARTITIONS)
        processor = EventProcessor(
            source=MemoryEventSource(hub),
            store=MemoryCheckpointStore(MemoryAccount()),
            handler=lambda: Waiting(self),
            config=EventProcessorConfig(
                key_concurrency=self._lanes,
                max_in_flight_events=min(4 * self._lanes + 100, 2_000),
                initial_position=EventPosition.earliest(),
            ),
        )
        async with processor:
            await self._in_lanes_us(hub)  # All partitions are claimed, all code was run.
            pairs = [(await self._bare_us(), await self._in_lanes_us(hub)) for _ in range(rounds)]
        return {
            "lanes": self._lanes,
            "wait_ms": round(self._wait_s * 1e3),
            "bare_us": round(min(bare for bare, _ in pairs), 1),
            "us_per_event": round(min(ours for _, ours in pairs), 1),
            "times_bare": round(median(ours / bare for bare, ours in pairs), 2),
        }

    async def wait(self) -> None:
        """Wait, and note that one more event is done."""
        await asyncio.sleep(self._wait_s)
        self._left -= 1
        if not self._left:
            self._done.set()

    async def _in_lanes_us(self, hub: MemoryHub) -> float:
        self._left = self._events
        self._done.clear()
        for number in range(self._events):
            hub.publish(BODY, partition_key=str(number))
        begun_s = time.process_time()
        await self._done.wait()
        return (time.process_time() - begun_s) / self._events * 1e6

    async def _bare_us(self) -> float:
        room = asyncio.Semaphore(self._lanes * PARTITIONS)
        tasks: set[asyncio.Task[None]] = set()

        async def wait() -> None:
            try:
                await asyncio.sleep(self._wait_s)
            finally:
                room.release()

        begun_s = time.process_time()
        for _ in range(self._events):
            await room.acquire()
            task = asyncio.create_task(wait())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        return (time.process_time() - begun_s) / self._events * 1e6


def main() -> None:
    given = options(__doc__).parse_args()
    total, sizes, rounds, waits = EVENTS, SIZES, ROUNDS, WAITS
    if given.quick:
        total, sizes, rounds, waits = EVENTS // 100, SIZES[:1], 1, WAITS[1:2]
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
    for lanes, wait_s in waits:
        count = max(total // 250, 2 * PARTITIONS * lanes) if lanes > 1 else total // 1000
        rows.append(asyncio.run(Waits(lanes, wait_s, count).row(5 * rounds)))
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()

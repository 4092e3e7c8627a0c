"""The gain of key lanes: one partition, 20 keys, 5 ms for each event.

Hub and store are in memory, so the delivery is measured. Each line is one run: its events per
second, and how many times the throughput of one lane that is.
"""

import asyncio
import time
from collections.abc import Sequence

from benchmarks._rows import Row, options, print_rows
from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    BlockingPartitionContext,
    BlockingPartitionHandler,
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub

KEYS = 20
EVENT_S = 0.005


class Waiting(PartitionHandler):
    """Waits for each event, as for a call to a service."""

    async def process_event(self, _context: PartitionContext, _event: ReceivedEvent) -> None:
        """Wait."""
        await asyncio.sleep(EVENT_S)


class Blocking(BlockingPartitionHandler):
    """The same with an ordinary function."""

    def process_event(self, _context: BlockingPartitionContext, _event: ReceivedEvent) -> None:
        """Wait."""
        time.sleep(EVENT_S)


class Batches(PartitionHandler):
    """Takes whole batches at once: the cost of everything but the handler."""

    async def process_events(
        self, _context: PartitionContext, _events: Sequence[ReceivedEvent]
    ) -> None:
        """Do nothing."""


async def measure(
    handler: type[PartitionHandler | BlockingPartitionHandler], lanes: int, event_count: int
) -> float:
    """Return the events per second."""
    hub = MemoryHub(partition_count=1)
    for number in range(event_count):
        hub.publish(b"x" * 100, partition_id="0", partition_key=f"key-{number % KEYS}")
    processor = EventProcessor(
        source=MemoryEventSource(hub),
        store=MemoryCheckpointStore(MemoryAccount()),
        handler=handler,
        config=EventProcessorConfig(key_concurrency=lanes),
    )
    async with processor:
        begun_s = time.perf_counter()
        while processor.statistics().counters.handled_count < event_count:  # noqa: ASYNC110 - a count
            await asyncio.sleep(0.001)
        return event_count / (time.perf_counter() - begun_s)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--lanes", nargs="+", type=int, default=[20])
    given = parser.parse_args()
    if given.quick:
        given.events = 200
    rows: list[Row] = []

    def add(handler: type, lanes: int, rate: float, one: float) -> None:
        rows.append(
            {
                "handler": handler.__name__,
                "lanes": lanes,
                "events_per_s": round(rate),
                "times_one_lane": round(rate / one, 1),
            }
        )

    for handler in (Waiting, Blocking):
        # One lane needs 5 ms for each event however many there are: a part of them is enough.
        one = asyncio.run(measure(handler, 1, given.events // 10))
        add(handler, 1, one, one)
        for lanes in given.lanes:
            add(handler, lanes, asyncio.run(measure(handler, lanes, given.events)), one)
    one = asyncio.run(measure(Batches, 1, 10 * given.events))
    add(Batches, 1, one, one)
    for lanes in given.lanes:
        add(Batches, lanes, asyncio.run(measure(Batches, lanes, 10 * given.events)), one)
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()

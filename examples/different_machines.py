"""Larger machines get more partitions, and a small one never more than it has memory for.

On real machines a process takes its weight from where it runs, such as ``os.cpu_count()``.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
    Weighted,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub

COUNT = 16
hub = MemoryHub(COUNT)
account = MemoryAccount()


class Handler(PartitionHandler):
    """Does nothing: here only the shares matter."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Handle an event."""


def processor(name: str, weight: float, capacity: int | None = None) -> EventProcessor:
    """Make the processor of a machine with so many cores, and memory for so many partitions."""
    config = EventProcessorConfig(placement=Weighted(), weight=weight, capacity=capacity)
    config = replace(config, load_balancing_interval=timedelta(seconds=1))
    store, source = MemoryCheckpointStore(account), MemoryEventSource(hub)
    return EventProcessor(source=source, store=store, handler=Handler, owner_id=name, config=config)


async def shares(*processors: EventProcessor) -> dict[str, int]:
    """Return how many partitions each one has, as soon as they have all."""
    while True:
        await asyncio.sleep(0.1)
        seen = [each.statistics() for each in processors]
        owned = {each.owner_id: len(each.owned) for each in seen}
        if all(each.is_balanced for each in seen) and sum(owned.values()) == COUNT:
            return owned


async def main() -> None:
    """Start three machines, then stop the largest."""
    async with processor("medium", 4) as medium, processor("small", 2, 3) as small:
        async with processor("large", 8) as large:
            print(await shares(large, medium, small))
        print(await shares(medium, small))


if __name__ == "__main__":
    asyncio.run(main())

"""State that stays exact if events are delivered twice: state and position are one write.

A handler fails in the middle of a batch, and the batch is delivered again. The total is right,
because state and position are of the same moment.
"""

import asyncio
from collections.abc import Sequence

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import EventProcessor, PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.sources.memory import MemoryEventSource, MemoryHub

deliveries: list[int] = []
done = asyncio.Event()


class Total(PartitionHandler):
    """Adds up amounts; fails once in the middle of a batch."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Add the amounts to the state, which is unchanged if this raises."""
        total = int(context.state or 0)
        for event in events:
            amount = int(event.body)
            deliveries.append(amount)
            total += amount
            if amount == 50 and deliveries.count(50) == 1:  # noqa: PLR2004
                raise RuntimeError("a crash between two events")
        context.state = str(total).encode()
        if events[-1].body == b"100":
            print(f"{len(deliveries)} deliveries of 100 events, total {total}")
            done.set()


async def main() -> None:
    """Process 100 amounts in one partition."""
    hub = MemoryHub(partition_count=1)
    for amount in range(1, 101):
        hub.publish(str(amount).encode(), partition_id="0")
    store = MemoryCheckpointStore(MemoryAccount())
    async with EventProcessor(source=MemoryEventSource(hub), store=store, handler=Total):
        await done.wait()


if __name__ == "__main__":
    asyncio.run(main())

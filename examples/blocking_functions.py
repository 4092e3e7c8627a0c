"""A handler of ordinary functions: each partition has a thread, so none waits for another."""

import asyncio
import threading
import time
from collections.abc import Sequence

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    BlockingPartitionContext,
    BlockingPartitionHandler,
    EventProcessor,
    ReceivedEvent,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub

threads: set[int] = set()
done = threading.Event()


class Slow(BlockingPartitionHandler):
    """Blocks for a while, as a driver of a database would."""

    def process_events(
        self, context: BlockingPartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order."""
        assert context.is_owned, "check this before an effect that cannot be undone"
        time.sleep(0.2)
        threads.add(threading.get_ident())
        print(f"partition {context.partition_id}: {len(events)} event\n", end="")
        if len(threads) == PARTITIONS:
            done.set()


PARTITIONS = 4


async def main() -> None:
    """Process one event in each partition, all at the same time."""
    hub = MemoryHub(partition_count=PARTITIONS)
    for index in range(PARTITIONS):
        hub.publish(b"work", partition_id=str(index))
    store = MemoryCheckpointStore(MemoryAccount())
    async with EventProcessor(source=MemoryEventSource(hub), store=store, handler=Slow):
        await asyncio.to_thread(done.wait)


if __name__ == "__main__":
    asyncio.run(main())
    print(f"{PARTITIONS} partitions in {len(threads)} threads")

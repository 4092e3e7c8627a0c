"""Keys side by side, and a poison event that goes to the dead letters with its story.

1,000 orders of ten customers in one partition; each takes a millisecond, one cannot be read.
"""

import asyncio

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    EventProcessor,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.deadletters import MemoryDeadLetterSink
from eventproc.sources.memory import MemoryEventSource, MemoryHub

COUNT = 1_000


class Orders(PartitionHandler):
    """Handles one order at a time; its lanes, ten of them."""

    async def process_event(self, _: PartitionContext, event: ReceivedEvent) -> None:
        """Read the order. What this raises concerns this one event only."""
        int(event.body)
        await asyncio.sleep(0.001)


async def main() -> None:
    """Process them all."""
    hub = MemoryHub(partition_count=1)
    for number in range(COUNT):
        body = b"twelve" if number == 12 else str(number).encode()  # noqa: PLR2004
        hub.publish(body, partition_id="0", partition_key=f"customer-{number % 10}")
    dead_letters = MemoryDeadLetterSink()
    processor = EventProcessor(
        source=MemoryEventSource(hub),
        store=MemoryCheckpointStore(MemoryAccount()),
        handler=Orders,
        dead_letters=dead_letters,
        config=EventProcessorConfig(
            key_lanes=10,
            failure_policy=FailurePolicy(attempts_max=3, then=FailureAction.DEAD_LETTER),
        ),
    )
    async with processor:
        while processor.statistics().tally.handled_count < COUNT - 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    (letter,) = dead_letters.letters
    print(f"{COUNT - 1} orders handled; dead after {letter.attempt_count} attempts:")
    print(f"{letter.event.body!r}: {letter.error_type}: {letter.error_message}")


if __name__ == "__main__":
    asyncio.run(main())

"""Handle several keys at once, and store a poison event as a dead letter with its error.

One partition has 1,000 orders of ten customers. Each takes a millisecond, and one is invalid.
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
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.sources.memory import MemoryEventSource, MemoryHub

COUNT = 1_000


class Orders(PartitionHandler):
    """Handles one order of each customer at a time, and ten customers at once."""

    async def process_event(self, _: PartitionContext, event: ReceivedEvent) -> None:
        """Read the order. An error concerns this event only."""
        int(event.body)
        await asyncio.sleep(0.001)


async def main() -> None:
    """Process all orders."""
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
            key_concurrency=10,
            failure_policy=FailurePolicy(attempts_max=3, action=FailureAction.DEAD_LETTER),
        ),
    )
    async with processor:
        while processor.statistics().counters.handled_count < COUNT - 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    (letter,) = dead_letters.letters
    print(f"{COUNT - 1} orders handled; dead after {letter.attempt_count} attempts:")
    print(f"{letter.event.body!r}: {letter.error_type}: {letter.error_message}")


if __name__ == "__main__":
    asyncio.run(main())

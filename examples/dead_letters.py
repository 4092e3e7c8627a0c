"""Dead letters: three of ten orders have no price; two prices later, a replay leaves one."""

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
from eventproc.dead_letters import (
    HandlerTarget,
    MemoryDeadLetterReader,
    MemoryDeadLetterSink,
    matching,
    replay,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub

PRICES = dict.fromkeys([f"article {number}" for number in range(7)], 10)
POLICY = FailurePolicy(attempts_max=1, action=FailureAction.DEAD_LETTER)


class Orders(PartitionHandler):
    """Needs the price of each article."""

    async def process_event(self, _: PartitionContext, event: ReceivedEvent) -> None:
        """Look the price up."""
        PRICES[event.body_as_str()]


async def main() -> None:
    """Process the orders, then replay."""
    hub = MemoryHub(partition_count=1, name="orders")
    for number in range(10):
        hub.publish(f"article {number}".encode())
    letters = MemoryDeadLetterSink()
    async with EventProcessor(
        source=MemoryEventSource(hub),
        store=MemoryCheckpointStore(MemoryAccount()),
        handler=Orders,
        dead_letters=letters,
        config=EventProcessorConfig(failure_policy=POLICY),
    ):
        while len(letters.letters) < 3:  # noqa: ASYNC110, PLR2004
            await asyncio.sleep(0.05)
    PRICES.update({"article 7": 70, "article 8": 80})
    async with MemoryDeadLetterReader(letters) as reader, HandlerTarget(Orders) as target:
        async for result in replay(reader, target, await matching(reader)):
            print(result.outcome.value, result.stored.place, result.reason)


if __name__ == "__main__":
    asyncio.run(main())

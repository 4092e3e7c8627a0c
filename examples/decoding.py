"""Get structs instead of bytes; what is no order becomes a dead letter with the reason."""

import asyncio

import msgspec

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
from eventproc.decoders import JsonDecoder
from eventproc.sources.memory import MemoryEventSource, MemoryHub


class Order(msgspec.Struct):
    """What the body of an event says."""

    customer: str
    count: int


class Orders(PartitionHandler[Order]):
    """Prints the orders."""

    decode = JsonDecoder(Order)

    async def process_value(self, _: PartitionContext, value: Order, event: ReceivedEvent) -> None:
        """Print one; its type is known."""
        print(f"{event.sequence_number}: {value.count} for {value.customer}")


async def main() -> None:
    """Process two events."""
    hub = MemoryHub(partition_count=1)
    for body in (b'{"customer": "a", "count": 1}', b'{"customer": "b"}'):
        hub.publish(body)
    letters = MemoryDeadLetterSink()
    policy = FailurePolicy(action=FailureAction.DEAD_LETTER)
    async with EventProcessor(
        source=MemoryEventSource(hub),
        store=MemoryCheckpointStore(MemoryAccount()),
        handler=Orders,
        dead_letters=letters,
        config=EventProcessorConfig(failure_policy=policy),
    ):
        while not letters.letters:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    print(letters.letters[0].error_message)


if __name__ == "__main__":
    asyncio.run(main())

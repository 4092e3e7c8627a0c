"""Some fakes of queues, and processors that share them."""

import asyncio
from collections.abc import Sequence
from random import Random

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import Checkpoint, EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc._delivery.handler import HandlerFactory
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import ConsumerGroup, SequenceRange
from eventproc.testing import FaultyCheckpointStore
from tests.scenarios.fake_queue import FakeQueue, FakeQueues
from tests.scenarios.group_setup import Setup, seconds


class Collecting(PartitionHandler):
    """Collects what it handled, with its owner, and counts in its state."""

    def __init__(
        self, handled: list[tuple[str, int]], owner_id: str, takes_s: float, *, has_state: bool
    ) -> None:
        self.has_state = has_state
        self.handled = handled
        self.owner_id = owner_id
        self.takes_s = takes_s

    async def process_events(self, context, events):
        """Handle one event after the other."""
        for event in events:
            if self.takes_s:
                await asyncio.sleep(self.takes_s)
            self.handled.append((self.owner_id, int(event.body)))
            if self.has_state:
                context.state = str(int(context.state or b"0") + 1).encode()


class QueueSetup(Setup):
    """Some queues, and processors that share them."""

    def __init__(self, count: int = 1, prefetch: int = 10) -> None:
        super().__init__()
        self.queues = {str(number): FakeQueue() for number in range(count)}
        self.prefetch = prefetch
        self.done: list[tuple[str, int]] = []
        self.ending: list[asyncio.Task[None]] = []
        self.stores: dict[str, FaultyCheckpointStore] = {}

    @property
    def queue(self) -> FakeQueue:
        return self.queues["0"]

    def member(
        self,
        owner_id: str = "a",
        takes_s: float = 0,
        *,
        handler: HandlerFactory | None = None,
        sink: MemoryDeadLetterSink | None = None,
        **settings,
    ) -> EventProcessor:
        """A processor that is not started yet."""
        has_state = settings.get("key_concurrency", 1) == 1
        store = FaultyCheckpointStore(MemoryCheckpointStore(self.account), Random(owner_id))
        self.stores[owner_id] = store
        return EventProcessor(
            source=FakeQueues(self.queues, self.prefetch),
            store=store,
            handler=handler
            or (lambda: Collecting(self.done, owner_id, takes_s, has_state=has_state)),
            dead_letters=sink,
            owner_id=owner_id,
            config=EventProcessorConfig(**{"uses_store_thread": False, **settings}),
            rng=Random(owner_id),
        )

    async def die(self, processor: EventProcessor) -> None:
        """End a process without any further write, and wait until its lease has expired."""
        self.stores[processor.owner_id].is_out = True
        for link in [link for queue in self.queues.values() for link in queue.links]:
            link.break_off()
        self.ending.append(asyncio.create_task(processor.stop()))
        await seconds(100)

    @property
    def messages(self) -> list[int]:
        return [message for _, message in self.done]

    @property
    def stored(self) -> Checkpoint:
        group = ConsumerGroup(fully_qualified_namespace="fake", eventhub_name="queues")
        return self.account.records(group).checkpoint_by_partition["0"]

    @property
    def stored_ranges(self) -> Sequence[SequenceRange]:
        group = ConsumerGroup(fully_qualified_namespace="fake", eventhub_name="queues")
        found = self.account.records(group).checkpoint_by_partition.get("0")
        return () if found is None else found.completed

    @property
    def stored_state(self) -> bytes | None:
        return self.stored.state

"""One processor of the harness, in a simulated process."""

from random import Random

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc.config import EventProcessorConfig
from eventproc.handler import HandlerFactory
from eventproc.ports import DeadLetterSink
from eventproc.processor import EventProcessor
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing.faults import FaultyCheckpointStore
from eventproc.testing.processes import Process


class Owner:
    """One processor, in a simulated process."""

    def __init__(self, processor: EventProcessor, store: FaultyCheckpointStore) -> None:
        self.processor = processor
        self.store = store
        self.process = Process(processor.owner_id)

    @property
    def owner_id(self) -> str:
        """The processor's owner id."""
        return self.processor.owner_id

    @property
    def is_alive(self) -> bool:
        """Whether the process is neither killed nor frozen."""
        return not (self.process.is_paused or self.process.is_killed)


def make_owner(
    owner_id: str,
    *,
    hub: MemoryHub,
    account: MemoryAccount,
    handler: HandlerFactory,
    dead_letters: DeadLetterSink,
    config: EventProcessorConfig,
) -> Owner:
    """Make a processor whose connection to the store can be cut."""
    chance = Random(owner_id)  # noqa: S311 - a test, no secrets
    store = FaultyCheckpointStore(MemoryCheckpointStore(account), chance)
    processor = EventProcessor(
        source=MemoryEventSource(hub),
        store=store,
        handler=handler,
        dead_letters=dead_letters,
        owner_id=owner_id,
        config=config,
        rng=chance,
    )
    return Owner(processor, store)

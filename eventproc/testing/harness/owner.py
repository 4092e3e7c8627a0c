"""One processor of the harness, in a simulated process."""

from random import Random

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc.config import EventProcessorConfig
from eventproc.handler import HandlerFactory
from eventproc.ports import DeadLetterSink
from eventproc.processor import EventProcessor
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing._processes import Process
from eventproc.testing.faults import FaultyCheckpointStore


class Owner:
    """One processor in a simulated process, whose connection to the store can be cut."""

    def __init__(
        self,
        owner_id: str,
        *,
        hub: MemoryHub,
        account: MemoryAccount,
        handler: HandlerFactory,
        dead_letters: DeadLetterSink,
        config: EventProcessorConfig,
    ) -> None:
        chance = Random(owner_id)  # noqa: S311 - a test, no secrets
        self.owner_id = owner_id
        self.process = Process(owner_id)
        self.store = FaultyCheckpointStore(MemoryCheckpointStore(account), chance)
        self.processor = EventProcessor(
            source=MemoryEventSource(hub),
            store=self.store,
            handler=handler,
            dead_letters=dead_letters,
            owner_id=owner_id,
            config=config,
            rng=chance,
            identity_bits=chance.getrandbits,
        )

    @property
    def is_alive(self) -> bool:
        """Whether the process is neither killed nor frozen."""
        return not (self.process.is_paused or self.process.is_killed)

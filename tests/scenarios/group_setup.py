"""A fleet for tests of one scenario each: a hub, a store in memory, and no faults of its own."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    Checkpoint,
    DeadLetterSink,
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
    Roster,
)
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc._delivery.handler import HandlerFactory
from eventproc._simulation.observer import Fleet
from eventproc.telemetry import Telemetry
from eventproc.testing import FaultyCheckpointStore


class Setup(Fleet):
    """Everything that several processors share."""

    def __init__(self, partition_count: int = 1) -> None:
        super().__init__(partition_count)
        self.account = MemoryAccount(now=self.now)
        self.telemetry: Telemetry | None = None
        self.handled: list[tuple[str, int]] = []
        self.store_by_owner: dict[str, FaultyCheckpointStore] = {}

    def processor(
        self,
        handler: HandlerFactory | None = None,
        owner_id: str | None = "a",
        *,
        sink: DeadLetterSink | None = None,
        roster: Roster | None = None,
        chance: str = "",
        **settings: Any,
    ) -> EventProcessor:
        """A processor that is not started yet; *settings* go to its config."""
        store = FaultyCheckpointStore(MemoryCheckpointStore(self.account), Random(owner_id))
        self.store_by_owner[owner_id or ""] = store
        return EventProcessor(
            source=self.make_source(),
            store=store,
            handler=handler or (lambda: Noting(self)),
            owner_id=owner_id,
            config=EventProcessorConfig(**{"uses_store_thread": False, **settings}),
            rng=(rng := Random(chance or owner_id)),
            identity_bits=rng.getrandbits,
            dead_letters=sink,
            roster=roster,
            telemetry=self.telemetry,
        )

    def publish(self, count: int, partition_id: str = "0") -> None:
        """Publish so many events to one partition."""
        for _ in range(count):
            self.hub.publish(b"x", partition_id=partition_id)

    def numbers(self, partition_id: str = "0") -> list[int]:
        """The sequence numbers that were handled, in order."""
        return [number for p, number in self.handled if p == partition_id]

    def owners(self) -> dict[str, str | None]:
        """Return the owner in each ownership record."""
        records = self.account.records(self.group).ownership_by_partition
        return {p: records[p].owner_id for p in sorted(records)}

    def checkpoint(self, partition_id: str = "0") -> Any:
        """Return the stored checkpoint; ``None`` before the first."""
        return self.account.records(self.group).checkpoint_by_partition.get(partition_id)

    def checkpointed(self, partition_id: str = "0") -> int | None:
        """The last event that the stored checkpoint covers; before the first there is none."""
        checkpoint: Checkpoint | None = self.checkpoint(partition_id)
        number = None if checkpoint is None else checkpoint.sequence_number
        return None if number == BEFORE_FIRST_SEQUENCE_NUMBER else number


class _NotedRecords(dict[str, Any]):
    """Records of a memory account; whoever reads them is told of each write."""

    def __init__(self, records: Mapping[str, Any], written: Callable[[Any, str], None]) -> None:
        super().__init__(records)
        self._written = written

    def __setitem__(self, key: str, record: Any) -> None:
        super().__setitem__(key, record)
        self._written(self, key)

    def pop(self, key: str, *default: Any) -> Any:
        record = super().pop(key, *default)
        self._written(self, key)
        return record


def note_writes(setup: Setup, name: str, written: Callable[[Any, str], None]) -> Callable[[], None]:
    """Call *written* with the group's records and a key after each write; return what ends that.

    *name* is the field of ``GroupRecords``. No task has to read them again and again.
    """
    records = setup.account.records(setup.group)
    setattr(records, name, _NotedRecords(getattr(records, name), written))
    return lambda: setattr(records, name, dict(getattr(records, name)))


def source_of(processor: EventProcessor) -> Any:
    """Return the source of a processor, to change what it does."""
    work: Any = processor._work
    return work._source


class Noting(PartitionHandler):
    """Records the events that it is given, and does nothing else."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Record every event."""
        self.setup.handled += [(context.partition_id, e.sequence_number) for e in events]


async def stop_all(processors: Iterable[EventProcessor]) -> None:
    """Stop all of these processors at the same time."""
    await asyncio.gather(*(processor.stop() for processor in processors))


async def until(is_so: Callable[[], object]) -> None:
    """Wait, in real time, for something that happens in a thread."""
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - nobody there could set an event
            await asyncio.sleep(0.005)


async def seconds(count: float) -> None:
    """Let virtual time pass."""
    await asyncio.sleep(count)

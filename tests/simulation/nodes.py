"""The processes of a world, each with one processor."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field

from eventproc import EventProcessor, ResourceProcessor
from eventproc._core.placement.placement import MemberFacts
from eventproc.models._statistics import ProcessorStatistics
from eventproc.testing._processes import Process
from tests.simulation.actor import Actor
from tests.simulation.azure.processor import ForeignProcessor
from tests.simulation.checked_store import CheckedConnection


@dataclass(eq=False, kw_only=True)
class CheckedNode:
    """One process with one processor, whose writes and calls the invariants check."""

    owner_id: str
    process: Process
    processor: EventProcessor | ResourceProcessor | ForeignProcessor
    actor: Actor
    connection: CheckedConnection
    facts: MemberFacts = field(default_factory=MemberFacts)
    """What a placement may know of it."""

    deployment_id: str = ""
    task: asyncio.Task[None] = field(init=False, repr=False)
    """The newest task of the process."""

    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    has_started: bool = False
    """Whether its start returned, so that it may claim partitions."""

    is_over: bool = False
    """Whether the processor ended by itself, or never started."""

    is_cut_off: bool = False
    """Whether the store is unreachable for it for good."""

    def run(self, coroutine: Coroutine[object, object, None]) -> None:
        """Run a coroutine inside the process."""
        self.task = self.process.spawn(coroutine)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended in any way."""
        return self.process.is_killed or self.task.done()

    @property
    def statistics(self) -> ProcessorStatistics:
        """The statistics of an ``EventProcessor``."""
        assert isinstance(self.processor, EventProcessor), "foreign members have no statistics"
        return self.processor.statistics()

    @property
    def served(self) -> frozenset[str]:
        """The partitions that it serves, by its own account."""
        if isinstance(self.processor, ForeignProcessor):
            return self.processor.served
        if isinstance(self.processor, ResourceProcessor):
            return frozenset(held.name for held in self.processor.statistics().resources)
        return frozenset(pump.partition_id for pump in self.statistics.pumps)

    @property
    def served_count(self) -> int:
        """How many partitions it serves, by its own account."""
        return len(self.served)

    @property
    def is_there(self) -> bool:
        """Whether it should own a share."""
        return not (
            self.process.is_killed or self.leaving.is_set() or self.is_over or self.is_cut_off
        )

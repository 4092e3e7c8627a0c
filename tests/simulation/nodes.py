"""The processes of a world, each with one processor."""

import asyncio
from dataclasses import dataclass, field

from eventproc import EventProcessor
from eventproc.simulation.fleet import Node
from eventproc.simulation.other_systems.external import ForeignProcessor
from eventproc.statistics import ProcessorStatistics
from tests.simulation.actor import Actor
from tests.simulation.checked_store import CheckedConnection


@dataclass(eq=False, kw_only=True)
class CheckedNode(Node):
    """One process with one processor, whose writes and calls the invariants check."""

    actor: Actor
    connection: CheckedConnection
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    has_started: bool = False
    """Whether its start returned, so that it may claim partitions."""

    is_over: bool = False
    """Whether the processor ended by itself, or never started."""

    is_cut_off: bool = False
    """Whether the store is unreachable for it for good."""

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

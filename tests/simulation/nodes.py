"""The processes of a world, each with a processor in it."""

import asyncio
from dataclasses import dataclass, field

from eventproc import EventProcessor
from eventproc.simulation.foreign import ForeignProcessor
from eventproc.statistics import ProcessorStatistics
from eventproc.testing.processes import Process
from tests.simulation.actor import Actor
from tests.simulation.line import Line


@dataclass(eq=False)
class Node:
    """One process with a processor in it."""

    owner_id: str
    process: Process
    processor: EventProcessor | ForeignProcessor
    line: Line
    actor: Actor
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    is_over: bool = False
    """Whether it ended by itself, or never began."""

    is_cut_off: bool = False
    """Whether it will never reach the store again."""

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.process.is_killed or (self.task is not None and self.task.done())

    @property
    def statistics(self) -> ProcessorStatistics:
        """Of one of ours."""
        assert isinstance(self.processor, EventProcessor), "other makes tell nothing"
        return self.processor.statistics()

    @property
    def served_count(self) -> int:
        """How many partitions it serves, by itself."""
        if isinstance(self.processor, ForeignProcessor):
            return len(self.processor.served)
        return len(self.statistics.pumps)

    @property
    def is_there(self) -> bool:
        """Whether it shall have its share."""
        return not (
            self.process.is_killed or self.leaving.is_set() or self.is_over or self.is_cut_off
        )

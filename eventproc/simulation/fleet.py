"""A fleet: a hub and processors on virtual time, each in a process that can be paused and killed.

``World`` plays scripts on it. The project's own tests add faults and invariants to it.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc.core.placement.state import MemberFacts
from eventproc.models import ConsumerGroup
from eventproc.ports import EventSource
from eventproc.processor import EventProcessor
from eventproc.simulation.other_systems.external import ForeignProcessor
from eventproc.simulation.store_connection import StoreConnection
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing._processes import Process

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(eq=False, kw_only=True)
class Node:
    """One process with one processor, and its connection to the store."""

    owner_id: str
    process: Process
    processor: EventProcessor | ForeignProcessor
    connection: StoreConnection
    facts: MemberFacts = field(default_factory=MemberFacts)
    """What a placement may know of it."""

    deployment_id: str = ""
    task: asyncio.Task[None] = field(init=False, repr=False)
    """The newest task of the process."""

    def run(self, coroutine: Coroutine[object, object, None]) -> None:
        """Run a coroutine inside the process."""
        self.task = self.process.spawn(coroutine)


class Fleet:
    """The hub and the clock that processors share."""

    def __init__(self, partition_count: int) -> None:
        self.hub = MemoryHub(partition_count, clock=self.now)
        self.group = ConsumerGroup(
            fully_qualified_namespace=self.hub.namespace, eventhub_name=self.hub.name
        )

    @property
    def now_s(self) -> float:
        """Seconds since the beginning."""
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """The hub's clock."""
        return BEGIN + timedelta(seconds=self.now_s)

    def make_source(self) -> EventSource:
        """Make the source of a processor."""
        return MemoryEventSource(self.hub)

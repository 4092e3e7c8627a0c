"""A fleet: a hub and a clock on virtual time, which processors share.

``World`` plays scripts on it. The project's own tests add faults and invariants to it.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc.models import ConsumerGroup
from eventproc.ports import EventSource
from eventproc.sources.memory import MemoryEventSource, MemoryHub

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)


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

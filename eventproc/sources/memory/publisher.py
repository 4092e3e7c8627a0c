"""Publishes events to a hub in memory, for tests and examples."""

from collections.abc import Sequence
from datetime import timedelta

from eventproc.errors import EventRefusedError
from eventproc.models import OutgoingEvent
from eventproc.ports import EventPublisher
from eventproc.sources.memory.hub import MemoryHub


class MemoryPublisher(EventPublisher):
    """Publishes to a ``MemoryHub``. An outage is an error at once, whatever the patience."""

    def __init__(self, hub: MemoryHub) -> None:
        self._hub = hub

    async def open(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    async def publish(self, events: Sequence[OutgoingEvent], *, patience: timedelta) -> None:  # noqa: ARG002
        self._hub.check_reachable()
        for index, event in enumerate(events):
            if event.body is None:
                raise EventRefusedError(index, "it has no body")
            self._hub.publish(
                event.body,
                partition_key=event.partition_key,
                partition_id=event.partition_id,
                properties=event.properties,
            )

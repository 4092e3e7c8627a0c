"""Reads from a hub in memory and publishes to it, for tests, examples and simulations.

The source passes the same contract tests as the other sources.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from eventproc._base.settings import checked
from eventproc.errors import ConfigurationError, EventRefusedError
from eventproc.models import (
    EventPosition,
    LastEnqueued,
    OutgoingEvent,
    PartitionProperties,
    ReceivedEvent,
)
from eventproc.ports import EventPublisher, EventSource, PartitionReceiver
from eventproc.sources.memory._hub import MemoryHub, MemoryLink

__all__ = ["MemoryEventSource", "MemoryHub"]


class MemoryReceiver(PartitionReceiver):
    """An open link to one partition of a ``MemoryHub``."""

    def __init__(self, hub: MemoryHub, link: MemoryLink) -> None:
        self._hub = hub
        self._link = link

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        # Let other tasks run, even if events are always waiting. After a take there is no await
        # before the return, so that a cancelled call has taken no events.
        await asyncio.sleep(0)
        events = self._link.take(events_max)
        if events or wait_max <= timedelta(0):
            return events
        try:
            async with asyncio.timeout(wait_max.total_seconds()):
                while not events:
                    await self._link.wait()
                    events = self._link.take(events_max)
        except TimeoutError:
            return ()
        return events

    async def close(self) -> None:
        self._hub._detach(self._link)  # noqa: SLF001 - a receiver of its own

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        return self._link.last_enqueued

    @property
    def is_over(self) -> bool:
        """Whether the link has ended."""
        return self._link.error is not None


class MemoryEventSource(EventSource):
    """Reads events from a ``MemoryHub``.

    Give each processor of a simulated group its own source on one shared hub.
    """

    @checked
    def __init__(self, hub: MemoryHub) -> None:
        self._hub = hub
        self._is_open = False
        self._created_at: datetime | None = None
        self._receivers: list[MemoryReceiver] = []

    @property
    def hub(self) -> MemoryHub:
        """The hub that this source reads from."""
        return self._hub

    @property
    def fully_qualified_namespace(self) -> str:
        return self._hub.namespace

    @property
    def eventhub_name(self) -> str:
        return self._hub.name

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False
        for receiver in self._receivers:
            await receiver.close()
        self._receivers.clear()

    async def check_consumer_group(self, name: str) -> None:
        await self._reach()
        if not self._hub.has_group(name):
            raise ConfigurationError(
                f"hub {self._hub.name!r} has no consumer group {name!r}: add it to the "
                "hub's consumer_groups, or correct the name"
            )

    async def partition_ids(self) -> Sequence[str]:
        await self._reach()
        self._created_at = self._hub.created_at
        return self._hub.partition_ids()

    @property
    def created_at(self) -> datetime | None:
        return self._created_at

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        await self._reach()
        return self._hub.partition_properties(partition_id)

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        await self._reach()
        receiver = MemoryReceiver(
            self._hub,
            self._hub._attach(consumer_group, partition_id, position),  # noqa: SLF001 - likewise
        )
        self._receivers = [r for r in self._receivers if not r.is_over]
        self._receivers.append(receiver)
        return receiver

    async def _reach(self) -> None:
        """Simulate a round trip to the hub: wait for ``latency``, raise during an outage."""
        if not self._is_open:
            raise RuntimeError("the source is not open: use `async with`, or call open() first")
        await asyncio.sleep(self._hub.latency.total_seconds())
        self._hub.check_reachable()


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

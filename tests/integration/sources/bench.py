"""The interface of a hub for the contract of sources, and helpers for its clauses."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Protocol

import pytest

from eventproc.errors import SourceError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.ports import EventSource, PartitionReceiver

GROUP = "$Default"
OTHER_GROUP = "audit"
EARLIEST = EventPosition.earliest()
SOON = timedelta(seconds=5)
BRIEFLY = timedelta(milliseconds=150)


class Bench(Protocol):
    """A hub with partitions 0, 1 and 2, the last of which is empty."""

    @property
    def is_exclusive(self) -> bool:
        """Whether the hub has consumer groups, and lets one receiver displace another.

        Kafka has neither for a client that reads partitions without joining a group.
        """

    @property
    def published(self) -> Counter[str]:
        """How many events each partition ever got, which is its next sequence number."""

    @property
    def refusal(self) -> type[SourceError]:
        """The error of a link that is refused permanently."""

    def source(self) -> EventSource:
        """Return an unopened source on the hub."""

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        """Publish events, in order."""

    async def grow(self) -> None:
        """Add a partition."""


def end_of(bench: Bench, partition_id: str) -> EventPosition:
    """Return the position after everything that was published so far."""
    return EventPosition.from_sequence_number(bench.published[partition_id], is_inclusive=True)


@asynccontextmanager
async def opened(
    bench: Bench, partition_id: str = "0", position: EventPosition | None = None
) -> AsyncIterator[PartitionReceiver]:
    """Yield a receiver, by default after everything that was published so far."""
    position = position or end_of(bench, partition_id)
    async with bench.source() as source:
        yield await source.open_receiver(GROUP, partition_id, position)


async def take(
    receiver: PartitionReceiver, count: int, *, events_max: int = 100
) -> list[ReceivedEvent]:
    """Receive until *count* events are there, or none comes any more."""
    events: list[ReceivedEvent] = []
    while len(events) < count:
        batch = await receiver.receive(events_max=events_max, wait_max=SOON)
        if not batch:
            break
        events += batch
    return events


def bodies(events: list[ReceivedEvent]) -> list[bytes]:
    return [event.body for event in events]


def numbered(count: int, prefix: bytes = b"") -> list[bytes]:
    return [prefix + b"%d" % number for number in range(count)]


async def refused(attempt: Awaitable[object], kind: type[Exception]) -> str:
    """Await something that must fail; return the message of its error."""
    with pytest.raises(kind) as caught:
        await attempt
    return str(caught.value)


async def read(source: EventSource, group: str, partition_id: str, position: EventPosition) -> None:
    """Open a receiver and wait for an event: an error may come from either call."""
    receiver = await source.open_receiver(group, partition_id, position)
    await receiver.receive(events_max=1, wait_max=timedelta(seconds=20))

"""A hub for the contract of sources, and helpers of its clauses.

A clause is a coroutine function; its docstring is the requirement that it checks.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import takewhile
from typing import Final

from eventproc.errors import SourceError, SourceRejectedError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.ports import EventSource, PartitionReceiver

GROUP: Final = "$Default"
OTHER_GROUP: Final = "audit"
EARLIEST: Final = EventPosition.earliest()
SOON: Final = timedelta(seconds=5)
BRIEFLY: Final = timedelta(milliseconds=150)


class SourceBench(ABC):
    """A hub with the partitions 0, 1 and 2, and sources that read it.

    Nobody else publishes to it, and nothing is ever published to partition 2. If the service has
    consumer groups, the hub has the groups ``$Default`` and ``audit``, and no group ``nobody``.
    """

    is_exclusive: bool = False
    """Whether a new receiver displaces an older one of its group, and unknown groups are refused.
    """

    refusal: type[SourceError] = SourceRejectedError
    """The error of ``open_receiver``, or of the first ``receive``, for a position that does not
    exist. ``SourceUnavailableError`` if the client library does not tell a refusal."""

    @abstractmethod
    def source(self) -> EventSource:
        """Return a new, unopened source on the hub. Two of them act as two processes."""

    @abstractmethod
    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        """Publish events with these bodies, in order; return when they can be received."""

    async def grow(self) -> bool:
        """Add a partition with the next number; return false if that is not possible."""
        return False


async def end_of(source: EventSource, partition_id: str = "0") -> EventPosition:
    """Return the position after everything that was published so far."""
    end = await source.partition_properties(partition_id)
    number = end.last_enqueued_sequence_number + 1
    return EventPosition.from_sequence_number(number, is_inclusive=True)


@asynccontextmanager
async def opened(
    bench: SourceBench, partition_id: str = "0", position: EventPosition | None = None
) -> AsyncIterator[PartitionReceiver]:
    """Yield a receiver, by default after everything that was published so far."""
    async with bench.source() as source:
        at = position or await end_of(source, partition_id)
        yield await source.open_receiver(GROUP, partition_id, at)


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


def bodies(events: Sequence[ReceivedEvent]) -> list[bytes]:
    """Return the bodies of events."""
    return [event.body for event in events]


def numbered(count: int, prefix: bytes = b"") -> list[bytes]:
    """Return so many different bodies."""
    return [prefix + b"%d" % number for number in range(count)]


async def refused(attempt: Awaitable[object], kind: type[Exception], what: str) -> str:
    """Await something that must fail; return the message of its error."""
    try:
        await attempt
    except kind as error:
        return str(error)
    except Exception as error:
        raise AssertionError(f"{what} must raise {kind.__name__}, not {error!r}") from error
    raise AssertionError(f"{what} must raise {kind.__name__}, and it raised nothing")


async def read(source: EventSource, group: str, partition_id: str, position: EventPosition) -> None:
    """Open a receiver and wait for an event: an error may come from either call."""
    receiver = await source.open_receiver(group, partition_id, position)
    await receiver.receive(events_max=1, wait_max=timedelta(seconds=20))


def require_bodies(events: Sequence[ReceivedEvent], wanted: Sequence[bytes], what: str) -> None:
    """Raise ``AssertionError`` unless the events have these bodies, in this order."""
    found, wanted = bodies(events), list(wanted)
    if found == wanted:
        return
    pairs = zip(found, wanted, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    raise AssertionError(
        f"{what}: wanted were {len(wanted)} and received {len(found)}; from number {same} on, "
        f"wanted were {_some(wanted[same:])}, received {_some(found[same:])}"
    )


def _some(values: Sequence[bytes]) -> str:
    return f"{values[:5]}" + (" ..." if len(values) > 5 else "")

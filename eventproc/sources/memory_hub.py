"""A partitioned hub in a dict: the log, its numbering, and what can go wrong with it.

It numbers events as Event Hubs does (sequence numbers from 0 without gaps, offsets that are
decimal strings and *not* the sequence number) and forgets from the old end only. Nothing here
polls, and the clock can be given, so whole groups of processors run on it in virtual time.
A hub is used from one event loop.
"""

import asyncio
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from eventproc.errors import (
    ConfigurationError,
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.models import EventPosition, LastEnqueued, PartitionProperties, ReceivedEvent
from eventproc.sources.memory_log import MemoryLog


def _utc_now() -> datetime:
    return datetime.now(UTC)


class MemoryLink:
    """One receiver's place in one partition. Ends with ``error``, and then never again reads."""

    def __init__(self, log: MemoryLog, next_sequence_number: int) -> None:
        self._log = log
        self._next = next_sequence_number
        self._changed = asyncio.Event()
        self._is_stalled = False
        self.error: SourceUnavailableError | SourceRejectedError | None = None
        self.last_enqueued: LastEnqueued | None = None

    def take(self, events_max: int) -> Sequence[ReceivedEvent]:
        """Return what is there now, and move on past it.

        Raises:
            SourceUnavailableError: the link ended; or its rejected counterpart.
        """
        if self.error is not None:
            raise self.error
        if self._is_stalled:
            return ()
        self.last_enqueued = self._log.last
        events = self._log.read(self._next, events_max)
        if events:
            self._next = events[-1].sequence_number + 1
        return events

    async def wait(self) -> None:
        """Return when an event arrived, or the link ended, since the last ``take``."""
        self._changed.clear()
        await self._changed.wait()

    def wake(self) -> None:
        """Tell whoever waits to look again."""
        self._changed.set()

    def end(self, error: SourceUnavailableError | SourceRejectedError) -> None:
        """End the link; the first reason stays."""
        self.error = self.error or error
        self.wake()

    def stall(self, *, is_stalled: bool) -> None:
        """Deliver nothing although there is something, or deliver again."""
        self._is_stalled = is_stalled
        self.wake()


class MemoryHub:
    """An event hub in memory. Several ``MemoryEventSource`` may share one.

    Args:
        partition_count: how many partitions it begins with; see ``grow``.
        name: the hub's name, a part of every record's key.
        namespace: likewise.
        consumer_groups: the groups that exist; ``None`` means any.
        retained_max: most events kept in each partition; ``None`` keeps all.
        clock: tells the enqueued times; it should not go back.
    """

    def __init__(
        self,
        partition_count: int = 4,
        *,
        name: str = "hub",
        namespace: str = "memory",
        consumer_groups: Sequence[str] | None = None,
        retained_max: int | None = None,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        if partition_count < 1:
            raise ConfigurationError(f"partition_count is {partition_count}: give 1 or more")
        self.name = name
        self.namespace = namespace
        self.latency = timedelta(0)
        """How long each question to the hub takes, opening a receiver included."""

        self._logs: dict[str, MemoryLog] = {}
        self.grow(partition_count)
        self._groups = None if consumer_groups is None else {g.lower() for g in consumer_groups}
        self._retained_max = retained_max
        self._clock = clock
        self._turn = 0
        self._links: dict[tuple[str, str], MemoryLink] = {}
        self._is_out = False
        self._refusals: dict[str, SourceUnavailableError | SourceRejectedError] = {}
        self._stalled: set[str] = set()

    # --- publishing and keeping ------------------------------------------------------------------

    def publish(
        self,
        body: bytes,
        *,
        partition_key: str | None = None,
        partition_id: str | None = None,
        properties: Mapping[str, object] | None = None,
    ) -> tuple[str, ReceivedEvent]:
        """Append one event; return the partition id and the event as it will be received.

        Events of one key go to one partition; without key and partition id they go round.
        """
        if partition_id is None:
            partition_id = self._choose_partition(partition_key)
        log = self._log(partition_id)
        event = log.append(
            body,
            enqueued_time=self._clock(),
            partition_key=partition_key,
            properties=dict(properties or {}),
        )
        if self._retained_max is not None:
            log.trim(log.end - self._retained_max)
        for link in self._links_of(partition_id):
            link.wake()
        return partition_id, event

    def trim(self, partition_id: str, *, before: int) -> None:
        """Forget the events below this sequence number, as retention does."""
        self._log(partition_id).trim(before)

    def grow(self, partition_count: int) -> None:
        """Add partitions until there are this many. A hub never shrinks, and keys move."""
        if partition_count < len(self._logs):
            raise ValueError(f"a hub of {len(self._logs)} partitions cannot shrink")
        for number in range(len(self._logs), partition_count):
            self._logs[str(number)] = MemoryLog(str(number))

    def events(
        self, partition_id: str, position: EventPosition | None = None
    ) -> Sequence[ReceivedEvent]:
        """The events that the partition still has, oldest first; or those from a position on."""
        log = self._log(partition_id)
        return tuple(log.read(0 if position is None else log.find(position)))

    # --- asking and reading ----------------------------------------------------------------------

    def partition_ids(self) -> Sequence[str]:
        """The ids of all partitions, in order."""
        return tuple(self._logs)

    def partition_properties(self, partition_id: str) -> PartitionProperties:
        """Where a partition begins and ends."""
        return self._log(partition_id).properties()

    def has_group(self, name: str) -> bool:
        """Whether the consumer group exists. Names are compared without regard to case."""
        return self._groups is None or name.lower() in self._groups

    def check_reachable(self) -> None:
        """Raise ``SourceUnavailableError`` during an outage."""
        if self._is_out:
            raise SourceUnavailableError(f"hub {self.name!r} does not answer: an outage is staged")

    def attach(self, group: str, partition_id: str, position: EventPosition) -> MemoryLink:
        """Begin to read; an older link of the group to the partition ends as displaced."""
        if not self.has_group(group):
            raise SourceRejectedError(f"hub {self.name!r} has no consumer group {group!r}")
        log = self._log(partition_id)
        if partition_id in self._refusals:
            raise self._refusals[partition_id]
        link = MemoryLink(log, log.find(position))
        link.stall(is_stalled=partition_id in self._stalled)
        self.displace(partition_id, group=group)
        self._links[group.lower(), partition_id] = link
        return link

    def detach(self, link: MemoryLink) -> None:
        """Forget a link; one that was displaced is forgotten already."""
        link.end(SourceUnavailableError("the receiver is closed"))
        for key, known in tuple(self._links.items()):
            if known is link:
                del self._links[key]

    # --- what can go wrong -----------------------------------------------------------------------

    def begin_outage(self) -> None:
        """From now on nothing answers, and every open link breaks."""
        self._is_out = True
        self.break_links()

    def end_outage(self) -> None:
        """Answer again. Links that broke stay broken: open others."""
        self._is_out = False

    def break_links(
        self, partition_id: str | None = None, *, error: SourceUnavailableError | None = None
    ) -> None:
        """End the open links to one partition, or to all, as a lost connection does."""
        for link in self._links_of(partition_id):
            link.end(error or SourceUnavailableError("the connection was broken on purpose"))

    def displace(self, partition_id: str, *, group: str) -> None:
        """End the group's link as if another receiver had come, which nobody has to be."""
        link = self._links.pop((group.lower(), partition_id), None)
        if link is not None:
            link.end(
                ReceiverDisplacedError(
                    f"another receiver of {group!r} took the link to partition {partition_id!r}"
                )
            )

    def refuse_opening(
        self, partition_id: str, error: SourceUnavailableError | SourceRejectedError
    ) -> None:
        """Let opening a receiver for this partition fail until ``allow_opening``."""
        self._refusals[partition_id] = error

    def allow_opening(self, partition_id: str) -> None:
        """Take a refusal back."""
        self._refusals.pop(partition_id, None)

    def stall(self, partition_id: str) -> None:
        """Deliver nothing from this partition, without any error, until ``resume``."""
        self._stalled.add(partition_id)
        for link in self._links_of(partition_id):
            link.stall(is_stalled=True)

    def resume(self, partition_id: str) -> None:
        """Deliver again what ``stall`` held back."""
        self._stalled.discard(partition_id)
        for link in self._links_of(partition_id):
            link.stall(is_stalled=False)

    # --- within ----------------------------------------------------------------------------------

    def _log(self, partition_id: str) -> MemoryLog:
        try:
            return self._logs[partition_id]
        except KeyError:
            raise SourceRejectedError(
                f"hub {self.name!r} has no partition {partition_id!r}, but 0 to "
                f"{len(self._logs) - 1}"
            ) from None

    def _choose_partition(self, partition_key: str | None) -> str:
        if partition_key is not None:
            return str(zlib.crc32(partition_key.encode()) % len(self._logs))
        self._turn += 1
        return str((self._turn - 1) % len(self._logs))

    def _links_of(self, partition_id: str | None) -> Sequence[MemoryLink]:
        return [link for (_, known), link in self._links.items() if partition_id in (None, known)]

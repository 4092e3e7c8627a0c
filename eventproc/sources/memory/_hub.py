"""A hub in memory: its partitions, publishing, links to them, and faults for tests.

Sequence numbers and offsets are like those of Event Hubs: sequence numbers rise from 0 without
gaps, and offsets are decimal strings that differ from the sequence number. Only the oldest events
are ever deleted. Nothing polls, and the clock is a parameter, so whole groups of processors run on
a hub in virtual time. A hub is used from one event loop only.
"""

import asyncio
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from eventproc._base.settings import Count, checked
from eventproc.errors import ReceiverDisplacedError, SourceRejectedError, SourceUnavailableError
from eventproc.models import EventPosition, LastEnqueued, PartitionProperties, ReceivedEvent
from eventproc.sources.memory._log import MemoryLog


def _utc_now() -> datetime:
    return datetime.now(UTC)


class MemoryLink:
    """A receiver's link to one partition: its position, and ``error`` once it has ended."""

    def __init__(self, log: MemoryLog, next_sequence_number: int) -> None:
        self._log = log
        self._next = next_sequence_number
        self._changed = asyncio.Event()
        self._is_stalled = False
        self.error: SourceUnavailableError | SourceRejectedError | None = None
        self.last_enqueued: LastEnqueued | None = None

    def take(self, events_max: int) -> Sequence[ReceivedEvent]:
        """Return the next events that exist now, at most *events_max*, and advance past them.

        Raises:
            SourceUnavailableError: the link ended; another attempt may succeed.
            SourceRejectedError: the link ended for a permanent reason.
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
        """Return at the next event, or when the link ends."""
        self._changed.clear()
        await self._changed.wait()

    def wake(self) -> None:
        """End the calls of ``wait``."""
        self._changed.set()

    def end(self, error: SourceUnavailableError | SourceRejectedError) -> None:
        """End the link. Later calls do not replace the first error."""
        self.error = self.error or error
        self.wake()

    def stall(self, *, is_stalled: bool) -> None:
        """Stop delivering events that exist, or deliver them again."""
        self._is_stalled = is_stalled
        self.wake()


class MemoryHub:
    """An event hub in memory. Several ``MemoryEventSource`` may share one.

    Args:
        partition_count: number of partitions at first; see ``grow``.
        name: the hub's name, a part of every record's key.
        namespace: the hub's namespace, a part of every record's key.
        consumer_groups: the groups that exist; ``None`` means any.
        retained_max: most events kept in each partition; ``None`` keeps all.
        clock: returns the enqueued time of an event; it should not go back.
    """

    @checked
    def __init__(
        self,
        partition_count: Count = 4,
        *,
        name: str = "hub",
        namespace: str = "memory",
        consumer_groups: Sequence[str] | None = None,
        retained_max: Count | None = None,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self.name = name
        self.namespace = namespace
        self.latency = timedelta(0)
        """How long each request to the hub takes, opening a receiver included."""

        self.created_at: datetime | None = None
        """When the hub was last recreated; ``None`` if it never was."""

        self._logs: dict[str, MemoryLog] = {}
        self.grow(partition_count)
        self._groups = None if consumer_groups is None else {g.lower() for g in consumer_groups}
        self._retained_max = retained_max
        self._clock = clock
        self._published_count = 0
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
        """Append one event; return its partition id, and the event that receivers will get.

        Events with the same key go to the same partition. Without key and partition id, events are
        distributed in turn.
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
        """Delete the events below this sequence number, as retention does."""
        self._log(partition_id).trim(before)

    def grow(self, partition_count: int) -> None:
        """Add partitions until there are this many. Keys then map to other partitions.

        Raises:
            ValueError: the hub has more partitions already.
        """
        if partition_count < len(self._logs):
            raise ValueError(f"a hub of {len(self._logs)} partitions cannot shrink")
        for number in range(len(self._logs), partition_count):
            self._logs[str(number)] = MemoryLog(str(number))

    def recreate(self) -> None:
        """Delete every event and break every link; sequence numbers begin at 0 again.

        Afterwards it is another hub of the same name and with as many partitions.
        """
        self.created_at = self._clock()
        count, self._logs = len(self._logs), {}
        self.grow(count)
        self.break_links()

    def events(
        self, partition_id: str, position: EventPosition | None = None
    ) -> Sequence[ReceivedEvent]:
        """Return the retained events of a partition, oldest first, or those from a position on."""
        log = self._log(partition_id)
        return tuple(log.read(0 if position is None else log.find(position)))

    # --- asking and reading ----------------------------------------------------------------------

    def partition_ids(self) -> Sequence[str]:
        """Return the ids of all partitions, in order."""
        return tuple(self._logs)

    def partition_properties(self, partition_id: str) -> PartitionProperties:
        """Return where a partition begins and ends."""
        return self._log(partition_id).properties()

    def has_group(self, name: str) -> bool:
        """Return whether the consumer group exists. Case is ignored."""
        return self._groups is None or name.lower() in self._groups

    def check_reachable(self) -> None:
        """Raise ``SourceUnavailableError`` during an outage."""
        if self._is_out:
            raise SourceUnavailableError(
                f"hub {self.name!r} does not answer: begin_outage() was called"
            )

    def _attach(self, group: str, partition_id: str, position: EventPosition) -> MemoryLink:
        """Open a link at a position; it displaces an older link of the group to the partition."""
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

    def _detach(self, link: MemoryLink) -> None:
        """Close a link."""
        link.end(SourceUnavailableError("the receiver is closed"))
        for key, known in tuple(self._links.items()):
            if known is link:
                del self._links[key]

    # --- what can go wrong -----------------------------------------------------------------------

    def begin_outage(self) -> None:
        """Break every link, and fail every request until ``end_outage``."""
        self._is_out = True
        self.break_links()

    def end_outage(self) -> None:
        """Answer requests again. Links that broke stay broken."""
        self._is_out = False

    def break_links(
        self, partition_id: str | None = None, *, error: SourceUnavailableError | None = None
    ) -> None:
        """End the open links to one partition, or to all, as a lost connection does."""
        for link in self._links_of(partition_id):
            link.end(error or SourceUnavailableError("the connection was broken on purpose"))

    def displace(self, partition_id: str, *, group: str) -> None:
        """End the group's link to a partition as if another receiver had taken it."""
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
        """Make opening a receiver for this partition fail until ``allow_opening``."""
        self._refusals[partition_id] = error

    def allow_opening(self, partition_id: str) -> None:
        """End the effect of ``refuse_opening``."""
        self._refusals.pop(partition_id, None)

    def stall(self, partition_id: str) -> None:
        """Deliver no events of this partition, without an error, until ``resume``."""
        self._stalled.add(partition_id)
        for link in self._links_of(partition_id):
            link.stall(is_stalled=True)

    def resume(self, partition_id: str) -> None:
        """End the effect of ``stall``."""
        self._stalled.discard(partition_id)
        for link in self._links_of(partition_id):
            link.stall(is_stalled=False)

    # --- within ----------------------------------------------------------------------------------

    def _log(self, partition_id: str) -> MemoryLog:
        try:
            return self._logs[partition_id]
        except KeyError:
            raise SourceRejectedError(
                f"hub {self.name!r} has no partition {partition_id!r}: its partitions are 0 to "
                f"{len(self._logs) - 1}"
            ) from None

    def _choose_partition(self, partition_key: str | None) -> str:
        if partition_key is not None:
            return str(zlib.crc32(partition_key.encode()) % len(self._logs))
        self._published_count += 1
        return str((self._published_count - 1) % len(self._logs))

    def _links_of(self, partition_id: str | None) -> Sequence[MemoryLink]:
        return [link for (_, known), link in self._links.items() if partition_id in (None, known)]

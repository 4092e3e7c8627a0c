"""What every part of one pump needs: which partition it is, how it stops, its counters and log."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from eventproc._base.logs import Logger
from eventproc._core.placement.loads import WorkDone
from eventproc._group.pumps.stop_scope import StopScope
from eventproc.models import ConsumerGroup, ReceivedEvent
from eventproc.models._events import body_bytes
from eventproc.models._statistics import DeliveryCounters


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionIdentity:
    """Which partition, of which consumer group, owned by which processor."""

    partition_id: str
    group: ConsumerGroup
    owner_id: str


@dataclass(slots=True)
class LastProgress:
    """When a pump last made progress."""

    at_s: float = 0.0
    """Loop time at which an event was last done, or received for the first time."""


class WorkMeter:
    """Adds up the handler calls and events of one pump, for placements that share by load."""

    def __init__(self, *, counts_bytes: bool = False) -> None:
        """Begin at zero. Counting bytes needs the body of each event, so it is off by default."""
        self._counts_bytes = counts_bytes
        self._seconds = 0.0
        """Of the calls that have ended, less the times at which those under way began."""

        self._event_count = 0
        self._byte_count = 0
        self._active_count = 0

    def begin(self, at_s: float) -> None:
        """Note that a call of the handler begins; calls at the same time add up."""
        self._seconds -= at_s
        self._active_count += 1

    def end(self, at_s: float) -> None:
        """Note that a call ended."""
        self._seconds += at_s
        self._active_count -= 1

    def handled(self, before: Sequence[ReceivedEvent], left: Sequence[ReceivedEvent]) -> None:
        """Count the events of *before* that are not *left*."""
        self._event_count += len(before) - len(left)
        if self._counts_bytes:
            self._byte_count += body_bytes(before) - body_bytes(left)

    def work_at(self, now_s: float) -> WorkDone:
        """Return what was done until now; a call under way counts up to now."""
        busy_s = self._seconds + self._active_count * now_s
        return WorkDone(busy=busy_s, events=self._event_count, bytes=self._byte_count)


class CallReport:
    """Gets the handler's calls with events of one partition; this one reports nothing."""

    def begin(self, events: Sequence[ReceivedEvent]) -> object | None:  # noqa: ARG002
        """Note that a call with these events begins, in its task; return what ``end`` gets."""
        return None

    def end(self, begun: object | None, seconds: float, error: BaseException | None) -> None:
        """Note that the call has ended, in the same task, and what it raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionScope:
    """One partition, for as long as one pump (or one task of Spark) serves it."""

    identity: PartitionIdentity
    stop: StopScope
    """Ends waits and calls when the pump stops."""

    counters: DeliveryCounters
    """The live counters; they change while the pump runs."""

    log: Logger
    meter: WorkMeter = field(default_factory=WorkMeter)
    """Measures the work done for the partition."""

    progress: LastProgress = field(default_factory=LastProgress)

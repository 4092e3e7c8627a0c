"""The instruments that are read from statistics: their names, units and values.

The names are those of OpenTelemetry's semantic conventions for messaging if they define one, and
otherwise begin with ``eventproc.``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from eventproc.models._statistics import (
    GroupStatistics,
    ProcessorStatistics,
    PumpStatistics,
    ResourceProcessorStatistics,
)

S = TypeVar("S")
G = TypeVar("G", bound=GroupStatistics)


@dataclass(frozen=True, slots=True)
class Instrument(Generic[S]):
    """A current value, read from statistics of type *S*; ``None`` if it is not known."""

    name: str
    unit: str
    description: str
    value: Callable[[S], float | None]


@dataclass(frozen=True, slots=True)
class Gauge(Instrument[G]):
    """A current value. *combine* merges those of several processors of a group in one process."""

    combine: Callable[[Iterable[float]], float] = sum


@dataclass(frozen=True, slots=True)
class Count(Instrument[G]):
    """A counter since the start, summed over all processors of a group in this process."""

    value: Callable[[G], int]
    operation: str = ""
    """The attribute ``messaging.operation.name``, which the conventions require on their own
    counters."""


@dataclass(frozen=True, slots=True)
class Instruments(Generic[G]):
    """The instruments that are read from one kind of statistics."""

    of: type[G]
    counts: tuple[Count[G], ...]
    gauges: tuple[Gauge[G], ...]


EVENT_COUNTS: Final = {
    "handled": "Events handled.",
    "retried": "Events delivered again after a failed call.",
    "dead_lettered": "Events given up and stored as dead letters.",
    "skipped": "Events given up and skipped.",
}
"""What becomes of events: the fields of ``DeliveryCounters`` without ``_count``, described."""

_EVENT_COUNTS: Final[tuple[Count[ProcessorStatistics], ...]] = (
    Count(
        "messaging.client.consumed.messages",
        "{message}",
        "Events received.",
        lambda s: s.counters.received_count,
        operation="receive",
    ),
    *(
        Count(f"eventproc.events.{name}", "{event}", text, attrgetter(f"counters.{name}_count"))
        for name, text in EVENT_COUNTS.items()
    ),
    Count(
        "eventproc.calls.failed",
        "{call}",
        "Calls of the handler that failed.",
        lambda s: s.counters.handler_error_count,
    ),
    Count(
        "eventproc.receivers.failed",
        "{failure}",
        "Receivers that broke or could not be opened.",
        lambda s: s.counters.receiver_error_count,
    ),
    Count(
        "eventproc.stalls",
        "{stall}",
        "Stalls: a partition had work and completed none of it within the stall timeout, or could "
        "receive none.",
        lambda s: s.counters.stall_count,
    ),
)

_GROUP_COUNTS: Final[tuple[Count[GroupStatistics], ...]] = (
    Count("eventproc.claims", "{claim}", "Partitions claimed.", lambda s: s.claim_count),
    Count("eventproc.steals", "{claim}", "Partitions stolen.", lambda s: s.steal_count),
    Count(
        "eventproc.hand_overs",
        "{partition}",
        "Partitions handed over.",
        lambda s: s.hand_over_count,
    ),
    Count(
        "eventproc.losses",
        "{partition}",
        "Partitions lost to other processors.",
        lambda s: s.lost_count,
    ),
    Count(
        "eventproc.conflicts",
        "{claim}",
        "Claims that another processor won.",
        lambda s: s.conflict_count,
    ),
    Count(
        "eventproc.ownership.writes",
        "{write}",
        "Writes of ownership records, renewals included.",
        lambda s: s.ownership_write_count,
    ),
)

_RESOURCE_COUNTS: Final[tuple[Count[ResourceProcessorStatistics], ...]] = (
    Count(
        "eventproc.holds", "{call}", "Calls of hold that began.", lambda s: s.counters.hold_count
    ),
    Count(
        "eventproc.holds.failed",
        "{call}",
        "Calls of hold that raised an error or returned.",
        lambda s: s.counters.hold_error_count,
    ),
    Count(
        "eventproc.holds.suspended",
        "{call}",
        "Calls of hold that were cancelled because the lease was not renewed in time.",
        lambda s: s.counters.suspended_count,
    ),
)

_RESOURCE_GAUGES: Final[tuple[Gauge[ResourceProcessorStatistics], ...]] = (
    Gauge("eventproc.resources.held", "{resource}", "Resources held.", lambda s: len(s.owned)),
    Gauge(
        "eventproc.resources.failing",
        "{resource}",
        "Held resources whose hold fails.",
        lambda s: sum(r.error is not None for r in s.resources),
    ),
)

_EVENT_GAUGES: Final[tuple[Gauge[ProcessorStatistics], ...]] = (
    Gauge("eventproc.partitions.owned", "{partition}", "Partitions owned.", lambda s: len(s.owned)),
    Gauge(
        "eventproc.partitions.served",
        "{partition}",
        "Partitions served.",
        lambda s: sum(pump.is_served for pump in s.pumps),
    ),
    Gauge(
        "eventproc.partitions.paused",
        "{partition}",
        "Partitions that are paused.",
        lambda s: sum(pump.is_paused for pump in s.pumps),
    ),
    Gauge(
        "eventproc.partitions.paused_by_operator",
        "{partition}",
        "Partitions that an operator has paused for the group.",
        lambda s: sum(pump.pause_reason is not None for pump in s.pumps),
    ),
    Gauge(
        "eventproc.partitions.stopped",
        "{partition}",
        "Partitions that the failure policy stopped.",
        lambda s: len(s.stopped),
    ),
    Gauge(
        "eventproc.partitions.stalled",
        "{partition}",
        "Partitions that have work and complete none of it, or can receive none.",
        lambda s: sum(pump.is_stalled for pump in s.pumps),
    ),
    Gauge(
        "eventproc.partitions.blocked",
        "{partition}",
        "Partitions whose checkpoint is damaged or refused by the store.",
        lambda s: sum(pump.checkpoint_error is not None for pump in s.pumps),
    ),
)

_GROUP_GAUGES: Final[tuple[Gauge[GroupStatistics], ...]] = (
    Gauge(
        "eventproc.prepared",
        "{handler}",
        "Partitions or resources of others whose handler is ready here.",
        lambda s: float(len(s.prepared)),
    ),
    Gauge(
        "eventproc.lease.margin",
        "s",
        "Time until the first lease is not trusted any more.",
        lambda s: s.lease_margin_seconds,
        min,
    ),
    Gauge(
        "eventproc.balanced",
        "1",
        "1 while this process has no partition to claim, steal or hand over, else 0.",
        lambda s: float(s.is_balanced),
        min,
    ),
    Gauge(
        "eventproc.unplaced",
        "{partition}",
        "Partitions that the placement gives to no processor, because each one is full.",
        lambda s: float(s.unplaced_count),
        max,
    ),
)

INSTRUMENTS: Final[tuple[Instruments[Any], ...]] = (
    Instruments(ProcessorStatistics, _EVENT_COUNTS, _EVENT_GAUGES),
    Instruments(GroupStatistics, _GROUP_COUNTS, _GROUP_GAUGES),
    Instruments(ResourceProcessorStatistics, _RESOURCE_COUNTS, _RESOURCE_GAUGES),
)
"""The instruments by class of statistics. A processor reports those of its statistics' class and of
that class's base classes."""

PARTITION_GAUGES: Final[tuple[Instrument[PumpStatistics], ...]] = (
    Instrument(
        "eventproc.checkpoint.age",
        "s",
        "Age of the oldest handled event that no checkpoint covers.",
        lambda p: p.checkpoint_age_seconds,
    ),
    Instrument(
        "eventproc.lag.events", "{event}", "Events in the hub not handled yet.", lambda p: p.lag
    ),
    Instrument(
        "eventproc.lag.time",
        "s",
        "Difference in enqueued time between the newest event and the last handled one.",
        lambda p: p.lag_seconds,
    ),
    Instrument(
        "eventproc.receiver.failing",
        "s",
        "Time for which no event could be received; 0 while the receiver does not fail.",
        lambda p: p.receiver_failing_seconds,
    ),
)
"""Current values of a partition, reported by the processor that serves it."""

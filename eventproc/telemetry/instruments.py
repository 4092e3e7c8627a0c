"""What is counted and measured, by name: one row for each instrument that is read.

The names of OpenTelemetry's conventions for messaging where they have one, else ours.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from eventproc.statistics import ProcessorStatistics, PumpStatistics


@dataclass(frozen=True, slots=True)
class Count:
    """A count since the start, over all processors of a group in this process."""

    name: str
    unit: str
    description: str
    value: Callable[[ProcessorStatistics], int]
    operation: str = ""
    """Its ``messaging.operation.name``, which the conventions want with their own counts."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """A value of now; of several processors of a group in one process their sum, or the least."""

    name: str
    unit: str
    description: str
    value: Callable[[ProcessorStatistics], float | None]
    combine: Callable[[Iterable[float]], float] = sum


@dataclass(frozen=True, slots=True)
class PartitionGauge:
    """A value of now, told of each partition by the processor that serves it."""

    name: str
    unit: str
    description: str
    value: Callable[[PumpStatistics], float | None]


COUNTS: Final = (
    Count(
        "messaging.client.consumed.messages",
        "{message}",
        "Events received.",
        lambda s: s.tally.received_count,
        operation="receive",
    ),
    Count(
        "eventproc.events.handled", "{event}", "Events handled.", lambda s: s.tally.handled_count
    ),
    Count(
        "eventproc.events.retried",
        "{event}",
        "Events handed over again after a failed call.",
        lambda s: s.tally.retried_count,
    ),
    Count(
        "eventproc.events.dead_lettered",
        "{event}",
        "Events given up and stored as dead letters.",
        lambda s: s.tally.dead_lettered_count,
    ),
    Count(
        "eventproc.events.skipped",
        "{event}",
        "Events given up and left out.",
        lambda s: s.tally.skipped_count,
    ),
    Count(
        "eventproc.calls.failed",
        "{call}",
        "Calls of the handler that failed.",
        lambda s: s.tally.handler_error_count,
    ),
    Count(
        "eventproc.receivers.failed",
        "{failure}",
        "Receivers that broke, or could not be opened.",
        lambda s: s.tally.receiver_error_count,
    ),
    Count(
        "eventproc.stalls",
        "{stall}",
        "Times that a partition had work and none of it got done.",
        lambda s: s.tally.stall_count,
    ),
    Count("eventproc.claims", "{claim}", "Claims of free partitions.", lambda s: s.claim_count),
    Count("eventproc.steals", "{claim}", "Partitions taken from others.", lambda s: s.steal_count),
    Count(
        "eventproc.hand_overs",
        "{partition}",
        "Partitions handed over.",
        lambda s: s.hand_over_count,
    ),
    Count("eventproc.losses", "{partition}", "Partitions lost to others.", lambda s: s.lost_count),
    Count("eventproc.conflicts", "{claim}", "Claims that others won.", lambda s: s.conflict_count),
    Count(
        "eventproc.ownership.writes",
        "{write}",
        "Writes of ownership records, renewals included.",
        lambda s: s.ownership_write_count,
    ),
)

GAUGES: Final = (
    Gauge("eventproc.partitions.owned", "{partition}", "Partitions owned.", lambda s: len(s.owned)),
    Gauge(
        "eventproc.partitions.served", "{partition}", "Partitions served.", lambda s: len(s.pumps)
    ),
    Gauge(
        "eventproc.partitions.paused",
        "{partition}",
        "Partitions that are to receive nothing.",
        lambda s: sum(pump.is_paused for pump in s.pumps),
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
        "Partitions that have work of which none gets done.",
        lambda s: sum(pump.is_stalled for pump in s.pumps),
    ),
    Gauge(
        "eventproc.lease.margin",
        "s",
        "How long the least trusted lease may still be trusted.",
        lambda s: s.lease_margin_seconds,
        min,
    ),
    Gauge(
        "eventproc.settled",
        "1",
        "1 while nothing that concerns this process has to change, else 0.",
        lambda s: float(s.is_settled),
        min,
    ),
)

PARTITION_GAUGES: Final = (
    PartitionGauge(
        "eventproc.checkpoint.age",
        "s",
        "For how long the oldest handled event waits for a checkpoint that covers it.",
        lambda p: p.checkpoint_age_seconds,
    ),
    PartitionGauge(
        "eventproc.lag.events", "{event}", "Events in the hub not handled yet.", lambda p: p.lag
    ),
    PartitionGauge(
        "eventproc.lag.time",
        "s",
        "By how much the last handled event is older than the newest one in the hub.",
        lambda p: p.lag_seconds,
    ),
)

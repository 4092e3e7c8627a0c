"""What every part of one pump needs: which partition it is, how it stops, its counters and log."""

from dataclasses import dataclass, field

from eventproc.logs import Logger
from eventproc.models import ConsumerGroup
from eventproc.partition.meter import WorkMeter
from eventproc.pumps.stop_scope import StopScope
from eventproc.statistics import DeliveryCounters


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionIdentity:
    """Which partition, of which consumer group, owned by which processor."""

    partition_id: str
    group: ConsumerGroup
    owner_id: str


@dataclass(slots=True)
class LastProgress:
    """When a partition last made progress."""

    at_s: float = 0.0
    """Loop time at which an event was last done, or received for the first time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionScope:
    """One partition, for as long as one pump (or one task of Spark) serves it."""

    identity: PartitionIdentity
    stop: StopScope
    """Cuts waits and calls when the pump stops."""

    counters: DeliveryCounters
    """The live counters; they change while the pump runs."""

    log: Logger
    meter: WorkMeter = field(default_factory=WorkMeter)
    """Measures how much work the partition makes."""

    last_progress: LastProgress = field(default_factory=LastProgress)

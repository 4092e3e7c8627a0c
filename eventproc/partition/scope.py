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
class Activity:
    """What a pump does, and when it last made progress."""

    progressed_at_s: float = 0.0
    """Loop time at which an event was last done, or received for the first time."""

    is_served: bool = False
    """Whether the handler was initialized, and is not being closed."""

    is_delivering: bool = False
    """Whether the pump waits for the handler, and not for the receiver."""

    is_throttled: bool = False
    """Whether it waits for a rate limit, or for a store that accepts no checkpoints."""


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

    activity: Activity = field(default_factory=Activity)

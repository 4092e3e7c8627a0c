"""Snapshots of a processor and its partitions, for logs, metrics and health checks."""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from typing import Self


class Phase(Enum):
    """What a processor is doing."""

    STARTING = "starting"
    """It opens its connections and enters the group."""

    SERVING = "serving"
    STOPPING = "stopping"
    """It drains and leaves the group, or has failed."""


@dataclass(slots=True, kw_only=True)
class Counters:
    """Counters of one pump; a processor adds them up."""

    def add(self, other: Self) -> None:
        """Add another one's counts to this one."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def copy(self) -> Self:
        """Return a copy."""
        return type(self)(**{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(slots=True, kw_only=True)
class HoldCounters(Counters):
    """Counters of the calls of ``hold``."""

    hold_count: int = 0
    """Calls that began."""

    hold_error_count: int = 0
    """Calls that raised an error, or returned although the resource was still held."""

    suspended_count: int = 0
    """Calls that were cancelled because the lease could not be renewed in time."""


@dataclass(slots=True, kw_only=True)
class DeliveryCounters(Counters):
    """Counters of delivery."""

    received_count: int = 0
    """Events received from the source, including those that were handled before."""

    handled_count: int = 0
    """Events that the handler handled."""

    handler_error_count: int = 0
    """Handler calls that failed."""

    retried_count: int = 0
    """Events delivered again after a failed call."""

    dead_lettered_count: int = 0
    """Events that were given up and stored as dead letters."""

    skipped_count: int = 0
    """Events that were given up and skipped."""

    receiver_error_count: int = 0
    """Failures of receivers."""

    stall_count: int = 0
    """Stalls that were detected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpStatistics:
    """A snapshot of one partition that is served."""

    partition_id: str
    sequence_number: int | None
    """The last handled event; with key lanes the last one up to which all are handled."""

    checkpointed_sequence_number: int | None
    """The last event that the stored checkpoint covers."""

    lag: int | None
    """Events in the hub that are not handled yet; ``None`` until the hub has reported it, while the
    receiver fails, and in a partition that is read from its beginning until an event is handled:
    what retention has removed there is not known."""

    lag_seconds: float | None
    """By how much the last handled event is older than the newest in the hub."""

    checkpoint_age_seconds: float
    """Age of the oldest handled event that no checkpoint covers; 0: there is none. After a crash,
    the events of that time would be delivered again."""

    checkpoint_error: str | None = None
    """Why the store refuses the partition's checkpoint, or that it is damaged: an operator has to
    act. If the checkpoint cannot be adopted, the partition is not served. ``None``: no error."""

    receiver_failing_seconds: float = 0.0
    """For how long no event could be received: the hub does not answer, or refuses; 0: it does
    not fail."""

    receiver_error: str | None = None
    """Why no event can be received; ``None``: the receiver does not fail."""

    is_served: bool = True
    """Its handler was initialized, and is not being closed."""

    is_trusted: bool = True
    """Whether the lease is trusted: if not, no event is delivered."""

    is_paused: bool
    """Receiving is paused, by this process or by an operator for the group."""

    paused_since: datetime | None = None
    """Since when an operator has paused it for the group, by the store's clock; else ``None``."""

    pause_reason: str | None = None
    """The operator's reason."""

    is_stalled: bool
    """The partition has work, and completed none of it for ``stall_timeout``."""

    progress_age_seconds: float = 0.0
    """Time since an event was completed, or received for the first time, or since the start."""

    call_seconds: float | None = None
    """For how long a call of the handler has completed nothing; ``None``: there is no call."""

    stalled_sequence_number: int | None = None
    """The first event that is not handled of the call that stalls, as ``stall_detected`` logged it;
    ``None``: there is no stall, or no call."""

    handler_error: str | None = None
    """How often, for how long and why the handler has failed in a row; ``None``: its last call did
    not fail."""

    counters: DeliveryCounters
    """Counted since the pump was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceStatistics:
    """A snapshot of one resource that is held."""

    name: str
    epoch: int
    """The fencing token."""

    is_trusted: bool
    """Whether the lease is trusted: if not, ``hold`` is not running."""

    failing_seconds: float
    """For how long ``hold`` has failed or returned; 0: it runs."""

    error: str | None
    """Why the latest call of ``hold`` failed; ``None``: it runs."""

    counters: HoldCounters
    """Counted since the resource was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatistics:
    """A snapshot of one member of a group. Counts are since its latest start, also after a stop."""

    owner_id: str
    owned: tuple[str, ...]
    """The partitions, or the resources, whose lease it holds."""

    handing_over: tuple[str, ...] = ()
    """Those that are being handed over, to another processor or because this one stops."""

    restarting: tuple[str, ...] = ()
    """Owned ones that are not served because of a failure, and are tried again after a wait."""

    prepared: tuple[str, ...] = ()
    """What it is a backup of, with a handler that is ready."""

    is_balanced: bool
    """Whether the latest cycle found nothing to change for this processor."""

    unplaced_count: int
    """Partitions or resources that the placement gives to no processor, because all that may have
    them are full."""

    cycle_count: int
    """Cycles that were completed."""

    cycle_seconds: float
    """How long the latest cycle took."""

    claim_count: int
    """Partitions or resources that were claimed."""

    steal_count: int
    """Partitions or resources that were stolen from another processor."""

    hand_over_count: int
    """Partitions or resources that were handed over to another processor."""

    lost_count: int
    """Partitions or resources that another processor took."""

    conflict_count: int
    """Claims and steals that another processor won."""

    ownership_write_count: int
    """Writes of ownership records."""

    lease_margin_seconds: float | None
    """For how long the lease closest to its end is still trusted; ``None`` without a lease."""

    store_error: str | None = None
    """Why the latest cycle or renewal failed: the store did not answer, or refuses; ``None``: none
    did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceProcessorStatistics(GroupStatistics):
    """A snapshot of one ``ResourceProcessor``."""

    resources: tuple[ResourceStatistics, ...]
    """A snapshot of each resource that it holds."""

    counters: HoldCounters
    """The sum over all resources, including those that it held before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorStatistics(GroupStatistics):
    """A snapshot of one ``EventProcessor``."""

    pumps: tuple[PumpStatistics, ...]
    """A snapshot of each partition that it serves now."""

    stopped: tuple[str, ...]
    """Partitions that the failure policy stopped: owned and not served until ``resume``."""

    counters: DeliveryCounters
    """The sum over all partitions, including those that it served before."""

    abandoned: tuple[str, ...] = ()
    """After a stop: partitions whose last checkpoint could not be stored. The events handled there
    since the checkpoint before are delivered again."""

    @property
    def lag(self) -> int | None:
        """Events not handled yet in all served partitions; ``None`` if it is unknown for one."""
        lags = [pump.lag for pump in self.pumps]
        return None if None in lags else sum(lag for lag in lags if lag is not None)

    @property
    def lag_seconds(self) -> float | None:
        """The largest of all served partitions; ``None`` if it is unknown for one."""
        lags = [pump.lag_seconds for pump in self.pumps]
        if None in lags:
            return None
        return max((lag for lag in lags if lag is not None), default=0.0)

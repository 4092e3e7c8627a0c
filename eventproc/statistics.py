"""How a processor does: a snapshot to look at, to log, or to turn into metrics."""

from dataclasses import dataclass, fields
from typing import Self


@dataclass(slots=True, kw_only=True)
class Tally:
    """Everything that is counted of delivery. Each pump has one; a processor adds them up."""

    received_count: int = 0
    """Events that came from the source, those that were handled before included."""

    handled_count: int = 0
    """Events that the handler took."""

    handler_error_count: int = 0
    """Calls that failed."""

    retried_count: int = 0
    """Events handed over again after a failed call."""

    dead_lettered_count: int = 0
    skipped_count: int = 0
    receiver_error_count: int = 0
    stall_count: int = 0

    def add(self, other: "Tally") -> None:
        """Count another one's in."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def copy(self) -> Self:
        """What it says now."""
        return type(self)(**{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpStatistics:
    """How one partition does."""

    partition_id: str
    sequence_number: int | None
    """The last handled event; with key lanes the last one below which all is handled."""

    checkpointed_sequence_number: int | None
    lag: int | None
    """Events in the hub that are not handled yet; ``None`` while the hub did not say."""

    lag_seconds: float | None
    """By how much the last handled event is older than the newest in the hub."""

    checkpoint_age_seconds: float
    """For how long the oldest handled event waits for a checkpoint that covers it; 0: none does.
    A crash would repeat what was handled in that time."""

    is_paused: bool
    is_stalled: bool
    """There is work, and none of it got done for ``stall_timeout``."""

    tally: Tally
    """Counted since the pump was started."""

    @property
    def handled_count(self) -> int:
        """Events that the handler took."""
        return self.tally.handled_count

    @property
    def handler_error_count(self) -> int:
        """Calls that failed."""
        return self.tally.handler_error_count

    @property
    def receiver_error_count(self) -> int:
        """How often receiving broke."""
        return self.tally.receiver_error_count


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorStatistics:
    """How one processor does. Counts are since its newest start, and stay after its stop."""

    owner_id: str
    owned: tuple[str, ...]
    """The partitions whose lease it keeps."""

    pumps: tuple[PumpStatistics, ...]
    """The partitions that it serves now."""

    stopped: tuple[str, ...]
    """Partitions that the failure policy stopped: owned and not served until ``resume``."""

    tally: Tally
    """All partitions together, also those that it served before."""

    is_settled: bool
    """Whether the newest look at the group left nothing to change for this processor."""

    cycle_count: int
    cycle_seconds: float
    """How long the newest look at the group took."""

    claim_count: int
    steal_count: int
    hand_over_count: int
    lost_count: int
    conflict_count: int
    """Claims and steals that somebody else won."""

    ownership_write_count: int
    lease_margin_seconds: float | None
    """For how long the least trusted lease may still be trusted; ``None`` without a lease."""

    @property
    def lag(self) -> int | None:
        """Events not handled yet over all served partitions; ``None`` if one did not say."""
        lags = [pump.lag for pump in self.pumps]
        return None if None in lags else sum(lag for lag in lags if lag is not None)

    @property
    def lag_seconds(self) -> float | None:
        """The largest of all served partitions; ``None`` if one did not say."""
        lags = [pump.lag_seconds for pump in self.pumps]
        if None in lags:
            return None
        return max((lag for lag in lags if lag is not None), default=0.0)

"""How a processor does: a snapshot to look at, to log, or to turn into metrics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpStatistics:
    """How one partition does."""

    partition_id: str
    sequence_number: int | None
    """The last handled event."""

    checkpointed_sequence_number: int | None
    lag: int | None
    """Events in the hub that are not handled yet; ``None`` while the hub did not say."""

    handled_count: int
    handler_error_count: int
    receiver_error_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorStatistics:
    """How one processor does. Counts are since its start."""

    owner_id: str
    owned: tuple[str, ...]
    """The partitions whose lease it keeps."""

    pumps: tuple[PumpStatistics, ...]
    """The partitions that it serves now."""

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

"""What there is to see at one moment: the values that the screen draws."""

from collections.abc import Sequence
from dataclasses import dataclass

from eventproc.cli.demo_spark.weeks import Weeks


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionScene:
    """One partition now."""

    partition_id: str
    published: int
    committed: int
    """Events that the stored checkpoint covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorScene:
    """One executor process."""

    pid: int
    fate: str
    """``running``, ``killed`` or ``ended``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything now."""

    elapsed_s: float
    headline: str
    total: int
    published: int
    batches: int
    partitions: Sequence[PartitionScene]
    executors: Sequence[ExecutorScene]
    week_names: Sequence[str]
    """All weeks that will come."""

    weeks: Weeks

    @property
    def committed(self) -> int:
        """Events that checkpoints cover."""
        return sum(row.committed for row in self.partitions)

    @property
    def aggregated(self) -> int:
        """Flights in the aggregate."""
        return sum(figures.flights for figures in self.weeks.values())

"""The state of ``eventproc demo-spark`` at one moment, for the screen."""

from collections.abc import Sequence
from dataclasses import dataclass

from eventproc.cli.demo.live import Progress
from eventproc.cli.demo.spark.weeks import Weeks


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionScene:
    """The state of one partition."""

    partition_id: str
    published: int
    committed: int
    """Events up to the position of the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorScene:
    """The state of one executor process."""

    pid: int
    fate: str
    """``running``, ``killed`` or ``ended``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(Progress):
    """The state of the demo."""

    batches: int
    partitions: Sequence[PartitionScene]
    executors: Sequence[ExecutorScene]
    week_names: Sequence[str]
    """All weeks of the published flights."""

    weeks: Weeks

    @property
    def committed(self) -> int:
        """Events up to the positions of the checkpoints."""
        return sum(row.committed for row in self.partitions)

    @property
    def aggregated(self) -> int:
        """Flights in the aggregate."""
        return sum(figures.flights for figures in self.weeks.values())

"""A group on paper: processes with a fixed rate, checkpoints in steps, and a scaler."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from eventproc._core.scaling.decision import Decision, ScalingMemory, ScalingRules, decide
from eventproc._core.scaling.readings import PartitionReading, Reading

STEP_S = 1
READ_EVERY_S = 10


@dataclass
class Partition:
    """Events are counted as fractions, and read as whole numbers."""

    last: float = 0.0
    handled: float = 0.0
    written: float = 0.0


@dataclass
class SimulatedGroup:
    """A group whose number of processes follows the votes, *start_s* seconds later."""

    rules: ScalingRules
    load: Callable[[float], float]
    """Events per second at a time."""

    rate: float = 100.0
    """Events per second of one process."""

    partition_count: int = 32
    start_s: float = 30.0
    written_every_s: int = 5
    processes: int = 1
    now_s: float = 0.0
    is_answering: Callable[[float], bool] = lambda _: True
    is_running: Callable[[float], bool] = lambda _: True
    partitions: list[Partition] = field(default_factory=list)
    memory: ScalingMemory = field(default_factory=ScalingMemory)
    decisions: list[tuple[float, Decision]] = field(default_factory=list)
    backlogs: list[tuple[float, float]] = field(default_factory=list)
    _due: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.partitions = [Partition() for _ in range(self.partition_count)]

    def play(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(int(seconds / STEP_S)):
            self.now_s += STEP_S
            self._handle()
            if self.now_s % self.written_every_s == 0 and self.is_answering(self.now_s):
                for partition in self.partitions:
                    partition.written = partition.handled
            if self.now_s % READ_EVERY_S == 0:
                self._scale()

    def _handle(self) -> None:
        while self._due and self._due[0][0] <= self.now_s:
            self.processes = self._due.pop(0)[1]
        for partition in self.partitions:
            partition.last += self.load(self.now_s) * STEP_S / self.partition_count
        if not self.is_running(self.now_s):
            return
        for number in range(self.processes):
            mine = self.partitions[number :: self.processes]
            left = self.rate * STEP_S
            for place, partition in enumerate(sorted(mine, key=lambda p: p.last - p.handled)):
                done = min(partition.last - partition.handled, left / (len(mine) - place))
                partition.handled += done
                left -= done

    def reading(self) -> Reading:
        """Return what store and hub would show."""
        running = self.processes if self.is_running(self.now_s) else 0
        return Reading(
            at_s=self.now_s,
            partitions={
                str(number): PartitionReading(
                    first=0,
                    last=int(partition.last) - 1,
                    handled=int(partition.written) - 1,
                    owner_id=f"member-{number % running}" if running else None,
                )
                for number, partition in enumerate(self.partitions)
            },
            member_ids=frozenset(f"member-{number}" for number in range(running)),
        )

    def _scale(self) -> None:
        former = self.memory.replicas
        given = self.reading() if self.is_answering(self.now_s) else None
        self.memory, decision = decide(self.memory, given, self.rules)
        self.decisions.append((self.now_s, decision))
        self.backlogs.append((self.now_s, sum(p.last - p.handled for p in self.partitions)))
        if decision.replicas not in {None, former}:
            assert decision.replicas is not None
            wait_s = self.start_s if decision.replicas > (former or 0) else 0
            self._due.append((self.now_s + wait_s, decision.replicas))

    def votes(self, since_s: float = 0.0) -> list[int]:
        """Return the votes that differ from the one before, in order."""
        given = [d.replicas for at_s, d in self.decisions if at_s >= since_s and d.replicas]
        return [v for n, v in enumerate(given) if n == 0 or v != given[n - 1]]

    def reversals(self, since_s: float = 0.0) -> int:
        """Count how often votes turned from more to fewer processes, or back."""
        votes = self.votes(since_s)
        ups = [later > earlier for earlier, later in pairwise(votes)]
        return sum(later != earlier for earlier, later in pairwise(ups))

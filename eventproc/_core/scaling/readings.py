"""Readings of a group, and the rates that two of them show.

Rule 1: events that retention deleted are no backlog, and to move past them is no progress.
Rule 2: rates are read only while every partition keeps its owner and its pause, and not before the
owners had time to write a first checkpoint: a process that starts, stops or waits for partitions
shows nothing of what it can do.
Rule 3: a process shows its full rate only while it has more to do than the events that it handled
and has not written a checkpoint for yet. Otherwise it handles what arrives, and could do more.
Rule 4: a paused partition has no backlog and no arrival, because no process may handle its events.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReading:
    """The hub's end and the group's position in one partition, by sequence numbers."""

    first: int
    """The oldest retained event; in an empty partition, the next one."""

    last: int
    """The newest event; ``first - 1`` if there is none."""

    handled: int | None
    """The last handled event; ``None`` without a checkpoint."""

    owner_id: str | None
    """The live owner."""

    is_paused: bool = False
    """Whether an operator has paused it."""

    @property
    def backlog(self) -> int:
        """Retained events that no checkpoint covers; none in a pause, which no process can end."""
        return 0 if self.is_paused else max(0, self.last - self.start)

    @property
    def start(self) -> int:
        """The last event that is handled or deleted."""
        before_first = self.first - 1
        return before_first if self.handled is None else max(self.handled, before_first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What store and hub answered at one time."""

    at_s: float
    """By the reader's monotonic clock."""

    partitions: Mapping[str, PartitionReading]
    member_ids: frozenset[str]
    """The live members that have or want a share of the partitions."""

    @property
    def backlog(self) -> int:
        """Retained events that no checkpoint covers, of all partitions."""
        return sum(partition.backlog for partition in self.partitions.values())

    def is_comparable_with(self, other: "Reading") -> bool:
        """Whether no member came or left, and no partition changed hands or was paused or resumed.

        Only then two readings show rates.
        """
        return self.member_ids == other.member_ids and self.held == other.held

    @property
    def held(self) -> dict[str, tuple[str | None, bool]]:
        """The live owner of each partition, and whether it is paused."""
        return {p: (found.owner_id, found.is_paused) for p, found in self.partitions.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Events per second between two readings."""

    arrivals: Mapping[str, float]
    """New events of each partition that is not paused."""

    drains: Mapping[str, float]
    """Events of each partition that the checkpoints moved over."""

    of_one: float | None
    """The mean rate of the processes that had a backlog all the time; ``None``: none had."""

    @property
    def arrival(self) -> float:
        """New events of all partitions that are not paused."""
        return sum(self.arrivals.values())

    @property
    def drain(self) -> float:
        """Events of all partitions that the checkpoints moved over."""
        return sum(self.drains.values())


def extended(
    readings: Sequence[Reading], newest: Reading, *, since_s: float, span_s: float
) -> tuple[Reading, ...]:
    """Return the readings from *since_s* on, no more of them than cover *span_s*."""
    kept = [*(reading for reading in readings if reading.at_s >= since_s), newest]
    while len(kept) > 2 and newest.at_s - kept[1].at_s >= span_s:  # noqa: PLR2004 - an interval
        del kept[0]
    return tuple(kept)


def rates_between(readings: Sequence[Reading], *, written_within_s: float) -> Rates | None:
    """Return the rates from the first to the last reading; ``None`` for fewer than two.

    Args:
        readings: In order, all comparable with each other.
        written_within_s: The longest time between two checkpoints of a partition.
    """
    before, after = readings[0], readings[-1]
    span_s = after.at_s - before.at_s
    if span_s <= 0:
        return None
    pairs = {p: (before.partitions[p], after.partitions[p]) for p in after.partitions}
    progress = {p: _progress(*pair) for p, pair in pairs.items()}
    return Rates(
        arrivals={p: _arrived(*pair) / span_s for p, pair in pairs.items()},
        drains={p: done / span_s for p, done in progress.items()},
        of_one=_rate_of_one(readings, progress, span_s, written_within_s),
    )


def _arrived(old: PartitionReading, new: PartitionReading) -> int:
    return 0 if new.is_paused else max(0, new.last - old.last)


def _progress(old: PartitionReading, new: PartitionReading) -> int:
    if new.last < old.last:
        return 0  # The hub was recreated.
    return max(0, new.start - max(old.start, new.first - 1))


def _rate_of_one(
    readings: Sequence[Reading],
    progress: Mapping[str, int],
    span_s: float,
    written_within_s: float,
) -> float | None:
    """Return the mean rate of the owners that had a backlog in each of the readings."""
    done_by_owner: defaultdict[str, int] = defaultdict(int)
    for partition_id, partition in readings[-1].partitions.items():
        if partition.owner_id is not None:
            done_by_owner[partition.owner_id] += progress[partition_id]
    least_by_owner = _least_backlogs(readings)
    busy = [
        done
        for owner_id, done in done_by_owner.items()
        # One without progress waits for something else, so it shows nothing.
        if done and least_by_owner[owner_id] > done / span_s * written_within_s
    ]
    return sum(busy) / len(busy) / span_s if busy else None


def _least_backlogs(readings: Sequence[Reading]) -> dict[str, int]:
    """Return the lowest backlog that each owner had in its partitions."""
    least: dict[str, int] = {}
    for reading in readings:
        backlogs: defaultdict[str, int] = defaultdict(int)
        for partition in reading.partitions.values():
            if partition.owner_id is not None:
                backlogs[partition.owner_id] += partition.backlog
        for owner_id, backlog in backlogs.items():
            least[owner_id] = min(backlog, least.get(owner_id, backlog))
    return least

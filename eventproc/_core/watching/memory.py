"""What is remembered of each partition from reading to reading.

Rule 1: the first reading already knows how long something has lasted, as far as the records say so:
from the age of a record, or of the newest event in the hub.
Rule 2: what one partition needs is bounded: a few instants, and at most ``POINTS_MAX`` points.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from eventproc._core.watching.group import WatchedGroup, WatchedPartition

RATE_SPAN_S: Final = 30.0
"""Rates are averages over this time: several checkpoints, by the default policy."""

POINT_SPAN_S: Final = 2.0
"""The least time between two points."""

PAUSE_FACTOR: Final = 3
"""If a reading comes this many times later than the one before it did, rates begin anew: an average
over the pause says nothing about now."""

POINTS_MAX: Final = int(RATE_SPAN_S / POINT_SPAN_S) + 1
CHANGES_SPAN_S: Final = 180.0
CHANGES_MAX: Final = 8
"""How far back changes of the owner are remembered, and how many."""


@dataclass(frozen=True, slots=True)
class Point:
    """The hub's end and the position of a partition at one time."""

    at_s: float
    last: int | None
    position: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMemory:
    """What is remembered of one partition."""

    seen: WatchedPartition
    """As in the newest reading."""

    owner_since_s: float
    moved_at_s: float
    """When the checkpoint last changed its position."""

    works_since_s: float | None
    """Since when there has been an event after the checkpoint all the time; ``None``: there is
    none."""

    unserved_since_s: float | None
    """Since when it has had no live owner; ``None``: it has one."""

    waits_from_first: bool = False
    """Events waited in the first reading, and the checkpoint has not moved since."""

    owners_since_move: int = 0
    """How often the owner changed since the position did."""

    changes: tuple[tuple[float, str | None], ...] = ()
    """The newest changes of the owner, each with its time and the new owner."""

    points: tuple[Point, ...] = ()

    @property
    def arrival_per_s(self) -> float | None:
        """Events per second that came into the hub; ``None`` if that is not known."""
        return _rate([(p.at_s, p.last) for p in self.points])

    @property
    def is_moving(self) -> bool:
        """Whether events are handled; of one reading, whether the checkpoint is young."""
        drain, at_s = self.drain_per_s, self.points[-1].at_s
        if drain is None:
            return self.seen.position is not None and at_s - self.moved_at_s < RATE_SPAN_S
        return drain > 0

    @property
    def drain_per_s(self) -> float | None:
        """Events per second that the checkpoint moved over."""
        return _rate([(p.at_s, p.position) for p in self.points])


def _rate(points: list[tuple[float, int | None]]) -> float | None:
    known = [(at_s, number) for at_s, number in points if number is not None]
    if len(known) < 2:  # noqa: PLR2004 - an interval has two ends
        return None
    (begin_s, first), (end_s, last) = known[0], known[-1]
    # Not negative, if the hub was recreated or an operator moved the position back.
    return max(0, last - first) / (end_s - begin_s)


Memory = Mapping[str, PartitionMemory]
"""By partition id."""


def remember(memory: Memory, group: WatchedGroup) -> Memory:
    """Return what is known after one more reading."""
    return {
        p.partition_id: (
            _first(p, group.at_s)
            if p.partition_id not in memory
            else _next(memory[p.partition_id], p, group.at_s)
        )
        for p in group.partitions
    }


def _first(p: WatchedPartition, at_s: float) -> PartitionMemory:
    renewed_s = at_s - (p.renewed_ago_s or 0)
    newest_ago_s = None if p.end is None else p.end.newest_ago_s
    return PartitionMemory(
        seen=p,
        owner_since_s=at_s,
        moved_at_s=at_s - (p.written_ago_s or 0),
        works_since_s=at_s - (newest_ago_s or 0) if p.has_work else None,
        unserved_since_s=None if p.server_id is not None else renewed_s,
        waits_from_first=p.has_work,
        points=_with_point((), p, at_s),
    )


def _next(known: PartitionMemory, p: WatchedPartition, at_s: float) -> PartitionMemory:
    before = known.seen
    has_moved = p.position != before.position
    has_changed = p.owner_id != before.owner_id
    changes = tuple(each for each in known.changes if at_s - each[0] <= CHANGES_SPAN_S)
    works_since_s = known.works_since_s if known.works_since_s is not None else at_s
    unserved_since_s = known.unserved_since_s if known.unserved_since_s is not None else at_s
    return replace(
        known,
        seen=p,
        owner_since_s=at_s if has_changed else known.owner_since_s,
        moved_at_s=at_s if has_moved else known.moved_at_s,
        works_since_s=works_since_s if p.has_work else None,
        unserved_since_s=None if p.server_id is not None else unserved_since_s,
        waits_from_first=known.waits_from_first and p.has_work and not has_moved,
        owners_since_move=0 if has_moved else known.owners_since_move + has_changed,
        changes=(*changes, (at_s, p.owner_id))[-CHANGES_MAX:] if has_changed else changes,
        points=_with_point(known.points, p, at_s),
    )


def _with_point(points: tuple[Point, ...], p: WatchedPartition, at_s: float) -> tuple[Point, ...]:
    """Return the points with a new one, if the newest is not too recent."""
    asked_s = at_s if p.end is None else p.end.at_s
    if points and asked_s - points[-1].at_s < POINT_SPAN_S:
        return points
    new = Point(asked_s, None if p.end is None else p.end.last, p.position)
    if len(points) > 1 and asked_s - points[-1].at_s >= max(
        RATE_SPAN_S, PAUSE_FACTOR * (points[-1].at_s - points[-2].at_s)
    ):
        return (new,)
    kept = [*points, new][-POINTS_MAX:]
    while len(kept) > 2 and asked_s - kept[1].at_s >= RATE_SPAN_S:  # noqa: PLR2004 - an interval
        del kept[0]
    return tuple(kept)

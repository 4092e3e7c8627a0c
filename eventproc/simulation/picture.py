"""What a history looks like, before it is drawn: who attends to which partition, at each moment.

Nothing but arithmetic on the history; ``plot`` puts it on paper.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from eventproc.simulation.history import Count, History, Listing
from eventproc.simulation.report import EventReport, owners_at

MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """From one time to another a partition is attended by this owner; ``None``: by nobody."""

    begin_s: float
    end_s: float
    owner_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One partition over time, without a gap."""

    partition_id: str
    first_owner_id: str | None
    """Who had it when the second event began."""

    stretches: Sequence[Stretch]


def rows_of(history: History) -> list[Row]:
    """Return each partition over time; those that had one owner at first stand together.

    A partition is attended by the owner of its record while that one's process runs. Who crashed
    attends to nothing, though its records live on until they expire.
    """
    changes: dict[str, list[tuple[float, str | None]]] = {}
    for change in history.changes:
        changes.setdefault(change.partition_id, []).append((change.at_s, change.owner_id))
    spans = _spans(history)
    settled_s = [h.at_s for h in history.happenings[1:2]] or [history.duration_s]
    first = owners_at(history, settled_s[0])
    rows = [
        Row(
            partition_id=p,
            first_owner_id=first.get(p),
            stretches=_stretches(changes.get(p, []), spans, history.duration_s),
        )
        for p in history.memberships[-1].partition_ids
    ]
    place: dict[str | None, int] = {o: number for number, o in enumerate(owners_of(history))}
    return sorted(rows, key=lambda row: place.get(row.first_owner_id, len(place)))


def owners_of(history: History) -> list[str]:
    """Everybody who ever ran, in the order of coming."""
    return list(dict.fromkeys(service.owner_id for service in history.services))


def _spans(history: History) -> dict[str, list[tuple[float, float]]]:
    """When each process ran: from, until."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for service in history.services:
        of_owner = spans.setdefault(service.owner_id, [])
        if service.is_up:
            of_owner.append((service.at_s, history.duration_s))
        elif of_owner:
            of_owner[-1] = (of_owner[-1][0], service.at_s)
    return spans


def _stretches(
    changes: Sequence[tuple[float, str | None]],
    spans: dict[str, list[tuple[float, float]]],
    duration_s: float,
) -> list[Stretch]:
    ends_s = [at_s for at_s, _ in changes[1:]] + [duration_s]
    stretches: list[Stretch] = []
    at_s = 0.0
    for (begin_s, owner_id), end_s in zip(changes, ends_s, strict=True):
        for up_s, down_s in spans.get(owner_id or "", []):
            served_s, left_s = max(begin_s, up_s), min(end_s, down_s)
            if served_s >= left_s:
                continue
            if served_s > at_s:
                stretches.append(Stretch(begin_s=at_s, end_s=served_s, owner_id=None))
            stretches.append(Stretch(begin_s=served_s, end_s=left_s, owner_id=owner_id))
            at_s = left_s
    if at_s < duration_s:
        stretches.append(Stretch(begin_s=at_s, end_s=duration_s, owner_id=None))
    return stretches


def per_minute(happened: Iterable[Count | Listing], duration_s: float, bins: int) -> list[float]:
    """How many operations a minute there were, in each of so many equal parts of the time."""
    counts: Counter[int] = Counter()
    for one in sorted(happened, key=attrgetter("at_s")):
        part = min(int(one.at_s / duration_s * bins), bins - 1)
        counts[part] += one.count if isinstance(one, Count) else 1
    width_minutes = duration_s / bins / MINUTE_S
    return [counts[part] / width_minutes for part in range(bins)]


def levels(positions: Sequence[float], widths: Sequence[float], count: int) -> list[int]:
    """Give each label a level so that those on one level do not overlap, while levels last.

    Args:
        positions: Where each label begins, rising.
        widths: How much room each takes.
        count: How many levels there are.
    """
    free_from = [float("-inf")] * count
    chosen = []
    for position, width in zip(positions, widths, strict=True):
        fitting = [level for level in range(count) if free_from[level] <= position]
        level = fitting[0] if fitting else min(range(count), key=free_from.__getitem__)
        free_from[level] = position + width
        chosen.append(level)
    return chosen


def caption_of(event: EventReport) -> str:
    """What an event led to, in a few words."""
    time = (
        "never balanced"
        if event.seconds_to_balance is None
        else f"balanced after {event.seconds_to_balance:,.1f} s"
    )
    moves = f"{event.moves:,} moves"
    if event.moves != event.moves_minimum:
        moves += f" (least {event.moves_minimum:,})"
    return f"{event.event}\n{time}\n{moves}"

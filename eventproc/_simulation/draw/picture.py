"""Computes what a plot shows: which processor serves which partition at each moment. Pure.

``plot`` draws it. The colours of processors can be told apart with every common kind of colour
blindness: they are those of M. Okabe and K. Ito (https://jfly.uni-koeln.de/color/), with a grey in
place of their black, which stands for partitions that no processor serves.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from eventproc._simulation.history import Count, History, Listing
from eventproc._simulation.report import EventReport, owners_at

MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipSpan:
    """From one time to another this owner serves a partition; ``None``: it is not served."""

    begin_s: float
    end_s: float
    owner_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One partition over time, without a gap."""

    partition_id: str
    first_owner_id: str | None
    """The owner when the second script event started."""

    spans: Sequence[OwnershipSpan]


def rows_of(history: History) -> list[Row]:
    """Return each partition over time, grouped by first owner.

    The owner in a partition's record serves it while its process runs. A crashed process serves
    nothing, although its records stay until they expire.
    """
    changes: dict[str, list[tuple[float, str | None]]] = {}
    for change in history.changes:
        changes.setdefault(change.partition_id, []).append((change.at_s, change.owner_id))
    uptimes = _uptimes(history)
    balanced_s = [h.at_s for h in history.script_events[1:2]] or [history.duration_s]
    first = owners_at(history, balanced_s[0])
    rows = [
        Row(
            partition_id=p,
            first_owner_id=first.get(p),
            spans=_ownership_spans(changes.get(p, []), uptimes, history.duration_s),
        )
        for p in history.memberships[-1].partition_ids
    ]
    rank: dict[str | None, int] = {o: number for number, o in enumerate(owners_of(history))}
    return sorted(rows, key=lambda row: rank.get(row.first_owner_id, len(rank)))


def owners_of(history: History) -> list[str]:
    """Return every processor that ever ran, in order of the first start."""
    return list(dict.fromkeys(service.owner_id for service in history.services))


def _uptimes(history: History) -> dict[str, list[tuple[float, float]]]:
    """Return the intervals in which each process ran: (from, until)."""
    uptimes: dict[str, list[tuple[float, float]]] = {}
    for service in history.services:
        of_owner = uptimes.setdefault(service.owner_id, [])
        if service.is_up:
            of_owner.append((service.at_s, history.duration_s))
        elif of_owner:
            of_owner[-1] = (of_owner[-1][0], service.at_s)
    return uptimes


def _ownership_spans(
    changes: Sequence[tuple[float, str | None]],
    uptimes: dict[str, list[tuple[float, float]]],
    duration_s: float,
) -> list[OwnershipSpan]:
    ends_s = [at_s for at_s, _ in changes[1:]] + [duration_s]
    spans: list[OwnershipSpan] = []
    at_s = 0.0
    for (begin_s, owner_id), end_s in zip(changes, ends_s, strict=True):
        for up_s, down_s in uptimes.get(owner_id or "", []):
            served_s, left_s = max(begin_s, up_s), min(end_s, down_s)
            if served_s >= left_s:
                continue
            if served_s > at_s:
                spans.append(OwnershipSpan(begin_s=at_s, end_s=served_s, owner_id=None))
            spans.append(OwnershipSpan(begin_s=served_s, end_s=left_s, owner_id=owner_id))
            at_s = left_s
    if at_s < duration_s:
        spans.append(OwnershipSpan(begin_s=at_s, end_s=duration_s, owner_id=None))
    return spans


def per_minute(happened: Iterable[Count | Listing], duration_s: float, bins: int) -> list[float]:
    """Return the operations per minute in each of *bins* equal parts of the time."""
    counts: Counter[int] = Counter()
    for one in sorted(happened, key=attrgetter("at_s")):
        part = min(int(one.at_s / duration_s * bins), bins - 1)
        counts[part] += one.count if isinstance(one, Count) else 1
    width_minutes = duration_s / bins / MINUTE_S
    return [counts[part] / width_minutes for part in range(bins)]


def levels(positions: Sequence[float], widths: Sequence[float], count: int) -> list[int]:
    """Choose a level for each label so that labels on one level do not overlap, if possible.

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
    """Return a caption that sums up the effects of an event."""
    time = (
        "never balanced"
        if event.seconds_to_balance is None
        else f"balanced after {event.seconds_to_balance:,.1f} s"
    )
    moves = f"{event.moves:,} moves"
    if event.moves != event.moves_minimum:
        moves += f" (least {event.moves_minimum:,})"
    return f"{event.event}\n{time}\n{moves}"


Rgb = tuple[float, float, float]
"""Red, green and blue, each from 0 to 1."""

PALETTE: Final[tuple[Rgb, ...]] = (
    (0.337, 0.706, 0.914),
    (0.902, 0.624, 0.000),
    (0.000, 0.620, 0.451),
    (0.800, 0.475, 0.655),
    (0.941, 0.894, 0.259),
    (0.000, 0.447, 0.698),
    (0.835, 0.369, 0.000),
    (0.780, 0.780, 0.780),
)
WHITE: Final[Rgb] = (1.0, 1.0, 1.0)
BLACK: Final[Rgb] = (0.0, 0.0, 0.0)


def colour_of(number: int) -> Rgb:
    """Return the colour of a processor, by its number in the order of the first start, from 0.

    24 processors have different colours, the later ones lighter or darker; then they repeat.
    """
    colour = PALETTE[number % len(PALETTE)]
    match number // len(PALETTE) % 3:
        case 1:
            return _mixed(colour, WHITE, 0.5)
        case 2:
            return _mixed(colour, BLACK, 0.4)
        case _:
            return colour


def _mixed(colour: Rgb, other: Rgb, part: float) -> Rgb:
    red, green, blue = (a + (b - a) * part for a, b in zip(colour, other, strict=True))
    return red, green, blue

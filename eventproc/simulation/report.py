"""Compute a report from a history: figures for each event of the script, and totals. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from eventproc.core.placement.even import moves_minimum
from eventproc.simulation.history import Count, History, Membership
from eventproc.simulation.price import HOURS_PER_MONTH, PriceList, pages_of

HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class EventReport:
    """The effects of one event of the script, until the next event or the end."""

    event: str
    at_seconds: float
    cycles_to_balance: int | None
    """Cycles from the event until the group stayed balanced, by the processor that ran most cycles;
    ``None``: the group never balanced."""

    seconds_to_balance: float | None
    moves: int
    """How often a partition got an owner other than its last one; its first owner counts, too."""

    moves_minimum: int
    moved_twice: int
    """Partitions that moved more than once."""

    conflicts: int
    """Claims that lost against another processor's claim."""

    steals_per_cycle_max: int
    """Most partitions that one processor stole in one cycle."""

    lists: int
    writes: int
    """Writes of ownership and member records. Checkpoints depend on the traffic and are extra."""

    duplicates: int
    worst_gap_seconds: float
    """The longest wait of an event to be handled. A gap between two events is not seen."""

    spread_final: int
    """Largest minus smallest number of partitions of a processor, at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Figures for the whole history."""

    hours: float
    moves: int
    moves_minimum: int
    moved_twice: int
    conflicts: int
    steals_per_cycle_max: int
    duplicates: int
    worst_gap_seconds: float
    spread_final: int
    lists_per_hour: int
    writes_per_hour: int
    dollars_per_month: float
    """Cost of listings and writes in US dollars, if every hour were like the simulated ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The figures of one simulation."""

    events: tuple[EventReport, ...]
    totals: Totals


def report_of(history: History, prices: PriceList | None = None) -> Report:
    """Return the figures of a history, which must have at least one script event."""
    begins_s = [script_event.at_s for script_event in history.script_events]
    windows = list(pairwise([*begins_s, float("inf")]))
    spreads = spread_over_time(history)
    events = tuple(
        _event(history, spreads, script_event.name, begin_s, end_s)
        for script_event, (begin_s, end_s) in zip(history.script_events, windows, strict=True)
    )
    hours = history.duration_s / HOUR_S
    lists_per_hour = len(history.listings) / hours
    writes_per_hour = sum(write.count for write in history.writes) / hours
    dollars_per_hour = (prices or PriceList()).of(
        writes=writes_per_hour, pages=pages_listed(history, 0, history.duration_s) / hours
    )
    return Report(
        events=events,
        totals=Totals(
            hours=round(hours, 3),
            moves=sum(event.moves for event in events),
            moves_minimum=sum(event.moves_minimum for event in events),
            moved_twice=sum(event.moved_twice for event in events),
            conflicts=sum(event.conflicts for event in events),
            steals_per_cycle_max=max(event.steals_per_cycle_max for event in events),
            duplicates=sum(event.duplicates for event in events),
            worst_gap_seconds=max(event.worst_gap_seconds for event in events),
            spread_final=events[-1].spread_final,
            lists_per_hour=round(lists_per_hour),
            writes_per_hour=round(writes_per_hour),
            dollars_per_month=round(dollars_per_hour * HOURS_PER_MONTH, 2),
        ),
    )


def _event(
    history: History,
    spreads: Sequence[tuple[float, int | None]],
    name: str,
    begin_s: float,
    end_s: float,
) -> EventReport:
    before = owners_at(history, begin_s)
    after = owners_at(history, end_s)
    last = [m for m in history.memberships if m.at_s < end_s][-1]
    moved = _moved(history, before, begin_s, end_s)
    balanced_at_s = _balanced_at_s(spreads, begin_s, end_s)
    looks: Counter[str] = Counter()
    if balanced_at_s is not None:
        looks.update(
            x.owner_id
            for x in history.listings
            if x.is_ownership and begin_s <= x.at_s <= balanced_at_s
        )
    held = _counts(before, last.members, last.partition_ids)
    got = _counts(after, last.members, last.partition_ids).values()
    homeless = len(last.partition_ids) - sum(held.values())
    return EventReport(
        event=name,
        at_seconds=round(begin_s, 3),
        cycles_to_balance=None if balanced_at_s is None else max(looks.values(), default=0),
        seconds_to_balance=None if balanced_at_s is None else round(balanced_at_s - begin_s, 3),
        moves=moved.total(),
        moves_minimum=homeless + moves_minimum(len(last.partition_ids), held),
        moved_twice=sum(count > 1 for count in moved.values()),
        conflicts=_sum(history.conflicts, begin_s, end_s),
        steals_per_cycle_max=max(
            (x.count for x in history.steals if begin_s <= x.at_s < end_s), default=0
        ),
        lists=sum(begin_s <= x.at_s < end_s for x in history.listings),
        writes=_sum(history.writes, begin_s, end_s),
        duplicates=_sum(history.duplicates, begin_s, end_s),
        worst_gap_seconds=round(
            max((x.seconds for x in history.waits if begin_s <= x.at_s < end_s), default=0.0), 3
        ),
        spread_final=max(got) - min(got),
    )


def pages_listed(history: History, begin_s: float, end_s: float) -> int:
    """Return how many pages the listings between two times had."""
    last = history.memberships[-1]
    of_ownership, of_members = pages_of(len(last.partition_ids)), pages_of(len(last.members))
    return sum(
        of_ownership if listing.is_ownership else of_members
        for listing in history.listings
        if begin_s <= listing.at_s < end_s
    )


def owners_at(history: History, at_s: float) -> dict[str, str]:
    """Return the owner of each partition just before a time; if it is released, its last owner."""
    owners: dict[str, str] = {}
    for change in history.changes:
        if change.at_s >= at_s:
            break
        if change.owner_id is not None:
            owners[change.partition_id] = change.owner_id
    return owners


def _moved(
    history: History, before: Mapping[str, str], begin_s: float, end_s: float
) -> Counter[str]:
    owners = dict(before)
    moved: Counter[str] = Counter()
    for change in history.changes:
        if begin_s <= change.at_s < end_s and change.owner_id is not None:
            if owners.get(change.partition_id) != change.owner_id:
                moved[change.partition_id] += 1
            owners[change.partition_id] = change.owner_id
    return moved


def _counts(
    owners: Mapping[str, str], members: Iterable[str], partition_ids: Iterable[str]
) -> dict[str, int]:
    counts = dict.fromkeys(sorted(members), 0)
    for partition_id in partition_ids:
        if owners.get(partition_id) in counts:
            counts[owners[partition_id]] += 1
    return counts


def spread_over_time(history: History) -> list[tuple[float, int | None]]:
    """The spread after each change of ownership or membership, with its time.

    ``None`` while a partition has no owner, or an owner that is leaving or gone.
    """
    owners: dict[str, str | None] = {}
    steps: list[tuple[float, int | None]] = []
    times_s = [m.at_s for m in history.memberships]
    changes = [(change.at_s, change) for change in history.changes]
    for membership, (begin_s, end_s) in zip(
        history.memberships, pairwise([*times_s, float("inf")]), strict=True
    ):
        steps.append((begin_s, _spread(owners, membership)))
        within = [change for at_s, change in changes if begin_s <= at_s < end_s]
        for at_s, group in groupby(within, key=lambda change: change.at_s):
            owners.update((change.partition_id, change.owner_id) for change in group)
            steps.append((at_s, _spread(owners, membership)))
    return steps


def _spread(owners: Mapping[str, str | None], membership: Membership) -> int | None:
    counts = dict.fromkeys(membership.members, 0)
    for partition_id in membership.partition_ids:
        owner_id = owners.get(partition_id)
        if owner_id not in counts:
            return None
        counts[owner_id] += 1
    return max(counts.values()) - min(counts.values())


def _balanced_at_s(
    spreads: Iterable[tuple[float, int | None]], begin_s: float, end_s: float
) -> float | None:
    """Return when the group became balanced and stayed so to the end of the window."""
    balanced_at_s: float | None = None
    for at_s, spread in spreads:
        if at_s >= end_s:
            break
        if spread is None or spread > 1:
            balanced_at_s = None
        elif balanced_at_s is None:
            balanced_at_s = at_s
    return None if balanced_at_s is None else max(balanced_at_s, begin_s)


def _sum(counts: Iterable[Count], begin_s: float, end_s: float) -> int:
    return sum(x.count for x in counts if begin_s <= x.at_s < end_s)

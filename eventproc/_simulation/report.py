"""Compute a report from a history: figures for each event of the script, and totals. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from eventproc._core.placement.even import Even
from eventproc._core.placement.placement import GroupState, Placement
from eventproc._core.placement.plan import plan
from eventproc._simulation.history import Count, History, Membership
from eventproc._simulation.price import HOURS_PER_MONTH, PriceList

HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class EventReport:
    """The effects of one event of the script, until the next event or the end."""

    event: str
    at_seconds: float
    cycles_to_balance: int | None
    """Cycles from the event until the group stayed balanced, by the processor that ran most cycles;
    ``None``: the group never balanced. It is balanced while each partition has its planned owner;
    with the placement ``Even`` that is a spread of 1 at most."""

    seconds_to_balance: float | None
    moves: int
    """How often a partition got an owner other than its last one; its first owner counts, too."""

    moves_minimum: int
    """Partitions whose planned owner, among the last members, was not their owner at the event."""

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


class Step(NamedTuple):
    """How the partitions are shared from a time on."""

    at_s: float
    spread: int | None
    """Largest minus smallest number of partitions of a processor. ``None`` while a partition has no
    owner, or an owner that is leaving or gone."""

    is_balanced: bool
    """Whether each partition has its planned owner."""


def report_of(history: History, prices: PriceList | None = None) -> Report:
    """Return the figures of a history, which must have at least one script event."""
    begins_s = [script_event.at_s for script_event in history.script_events]
    windows = list(pairwise([*begins_s, float("inf")]))
    steps = steps_of(history)
    events = tuple(
        _event(history, steps, script_event.name, begin_s, end_s)
        for script_event, (begin_s, end_s) in zip(history.script_events, windows, strict=True)
    )
    hours = history.duration_s / HOUR_S
    lists_per_hour = len(history.listings) / hours
    writes_per_hour = sum(write.count for write in history.writes) / hours
    prices = prices or PriceList()
    pages = pages_listed(history, 0, history.duration_s, prices)
    dollars_per_hour = prices.of(writes=writes_per_hour, pages=pages / hours)
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
    steps: Sequence[Step],
    name: str,
    begin_s: float,
    end_s: float,
) -> EventReport:
    before = owners_at(history, begin_s)
    after = owners_at(history, end_s)
    last = [m for m in history.memberships if m.at_s < end_s][-1]
    moved = _moved(history, before, begin_s, end_s)
    balanced_at_s = _balanced_at_s(steps, begin_s, end_s)
    looks: Counter[str] = Counter()
    if balanced_at_s is not None:
        looks.update(
            x.owner_id
            for x in history.listings
            if x.is_ownership and begin_s <= x.at_s <= balanced_at_s
        )
    planned = plan(_state(before, last), history.placement)
    got = _state(after, last).held_count_by_member.values()
    return EventReport(
        event=name,
        at_seconds=round(begin_s, 3),
        cycles_to_balance=None if balanced_at_s is None else max(looks.values(), default=0),
        seconds_to_balance=None if balanced_at_s is None else round(balanced_at_s - begin_s, 3),
        moves=moved.total(),
        moves_minimum=sum(before.get(p) != owner_id for p, owner_id in planned.items()),
        moved_twice=sum(count > 1 for count in moved.values()),
        conflicts=_sum(history.conflicts, begin_s, end_s),
        steals_per_cycle_max=max(
            (x.count for x in history.steals if begin_s <= x.at_s < end_s), default=0
        ),
        lists=sum(begin_s <= x.at_s < end_s for x in history.listings),
        writes=_sum(history.writes, begin_s, end_s),
        duplicates=duplicates_in(history, begin_s, end_s),
        worst_gap_seconds=worst_wait_in(history, begin_s, end_s),
        spread_final=max(got, default=0) - min(got, default=0),
    )


def pages_listed(history: History, begin_s: float, end_s: float, prices: PriceList) -> int:
    """Return how many pages the listings between two times had."""
    last = history.memberships[-1]
    of_ownership = prices.pages_of(len(last.partition_ids))
    of_members = prices.pages_of(len(last.members))
    return sum(
        of_ownership if listing.is_ownership else of_members
        for listing in history.listings
        if begin_s <= listing.at_s < end_s
    )


def duplicates_in(history: History, begin_s: float, end_s: float) -> int:
    """Return how many events were handled again between two times."""
    return _sum(history.duplicates, begin_s, end_s) * history.events_each


def worst_wait_in(history: History, begin_s: float, end_s: float) -> float:
    """Return the longest wait that ended between two times, in seconds."""
    waits_s = (wait.seconds for wait in history.waits if begin_s <= wait.at_s < end_s)
    return round(max(waits_s, default=0.0), 3)


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


def steps_of(history: History) -> list[Step]:
    """Return a step for each moment at which an owner or the membership changed."""
    owners: dict[str, str | None] = {}
    steps: list[Step] = []
    times_s = [m.at_s for m in history.memberships]
    changes = [(change.at_s, change) for change in history.changes]
    for membership, (begin_s, end_s) in zip(
        history.memberships, pairwise([*times_s, float("inf")]), strict=True
    ):
        steps.append(_step(begin_s, owners, membership, history.placement))
        within = [change for at_s, change in changes if begin_s <= at_s < end_s]
        for at_s, group in groupby(within, key=lambda change: change.at_s):
            owners.update((change.partition_id, change.owner_id) for change in group)
            steps.append(_step(at_s, owners, membership, history.placement))
    return steps


def _step(
    at_s: float, owners: Mapping[str, str | None], membership: Membership, placement: Placement
) -> Step:
    spread = _spread(owners, membership)
    if placement == Even():  # Whose plan has a spread of 1 at most: that is found faster.
        return Step(at_s, spread, is_balanced=spread is not None and spread <= 1)
    planned = plan(_state(owners, membership), placement)
    is_planned = all(owners.get(p) == owner_id for p, owner_id in planned.items())
    return Step(at_s, spread, is_balanced=is_planned and bool(membership.members))


def _spread(owners: Mapping[str, str | None], membership: Membership) -> int | None:
    counts = dict.fromkeys(membership.members, 0)
    for partition_id in membership.partition_ids:
        owner_id = owners.get(partition_id)
        if owner_id not in counts:
            return None
        counts[owner_id] += 1
    return max(counts.values()) - min(counts.values())


def _state(owners: Mapping[str, str | None], membership: Membership) -> GroupState:
    """Return what a placement sees of the group."""
    return GroupState(
        resources=membership.partition_ids,
        owner_by_resource={p: owner_id for p, owner_id in owners.items() if owner_id is not None},
        members=membership.members,
    )


def _balanced_at_s(steps: Iterable[Step], begin_s: float, end_s: float) -> float | None:
    """Return when the group became balanced and stayed so to the end of the window."""
    balanced_at_s: float | None = None
    for step in steps:
        if step.at_s >= end_s:
            break
        if not step.is_balanced:
            balanced_at_s = None
        elif balanced_at_s is None:
            balanced_at_s = step.at_s
    return None if balanced_at_s is None else max(balanced_at_s, begin_s)


def _sum(counts: Iterable[Count], begin_s: float, end_s: float) -> int:
    return sum(x.count for x in counts if begin_s <= x.at_s < end_s)

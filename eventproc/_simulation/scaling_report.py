"""Compute from a history with a scaler how well the number of processes followed the load. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from eventproc._core.scaling.decision import ScalingRules
from eventproc._simulation.history import History, Voted
from eventproc._simulation.report import HOUR_S, duplicates_in, worst_wait_in


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """What the scaler made of one event of the script, until the next event or the end."""

    event: str
    at_seconds: float
    load: float
    """Events that arrive in a second."""

    processes: tuple[int, ...]
    """The votes, in order, each that differs from the one before; the first was there before."""

    reversals: int
    """How often votes turned from more to fewer processes, or back."""

    backlog_max: int
    """The most events in the hub that no handler had completed."""

    seconds_to_drain: float | None
    """From the event until the backlog fell below what arrives in ``checkpoint_interval``, to stay
    there; ``None``: it did not."""

    worst_wait_seconds: float
    """The longest time from the publication of an event until it was handled."""

    duplicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingReport:
    """The figures of a simulation with a scaler."""

    events: tuple[LoadReport, ...]
    votes: tuple[Voted, ...]
    """The votes that differ from the one before, each with a number."""

    process_hours: float
    """The sum of the times for which processes ran, in hours."""


def scaling_report_of(history: History, rules: ScalingRules) -> ScalingReport:
    """Return the figures of a history with votes."""
    checkpoint_interval_s = rules.checkpoint_interval.total_seconds()
    times_s = [event.at_s for event in history.script_events]
    spans_s = pairwise([*times_s, history.duration_s])
    return ScalingReport(
        events=tuple(
            _event(history, event.name, begin_s, end_s, checkpoint_interval_s)
            for event, (begin_s, end_s) in zip(history.script_events, spans_s, strict=True)
        ),
        votes=tuple(
            next(votes)
            for replicas, votes in groupby(history.votes, key=lambda vote: vote.replicas)
            if replicas is not None
        ),
        process_hours=round(_process_hours(history), 3),
    )


def _event(
    history: History, name: str, begin_s: float, end_s: float, checkpoint_interval_s: float
) -> LoadReport:
    within = [vote for vote in history.votes if begin_s <= vote.at_seconds < end_s]
    before = [vote for vote in history.votes if vote.at_seconds < begin_s][-1:]
    processes = _changes(
        [vote.replicas for vote in (*before, *within) if vote.replicas is not None]
    )
    rises = [later > earlier for earlier, later in pairwise(processes)]
    drained_s = _drained_s(within, checkpoint_interval_s)
    return LoadReport(
        event=name,
        at_seconds=round(begin_s, 3),
        load=within[-1].load if within else 0.0,
        processes=processes,
        reversals=sum(earlier != later for earlier, later in pairwise(rises)),
        backlog_max=max((vote.backlog for vote in within), default=0),
        seconds_to_drain=None if drained_s is None else round(drained_s - begin_s, 3),
        worst_wait_seconds=worst_wait_in(history, begin_s, end_s),
        duplicates=duplicates_in(history, begin_s, end_s),
    )


def _changes(votes: Sequence[int]) -> tuple[int, ...]:
    """Return the votes without those that are like the one before."""
    return tuple(votes[:1]) + tuple(later for former, later in pairwise(votes) if later != former)


def _drained_s(votes: Sequence[Voted], checkpoint_interval_s: float) -> float | None:
    """Return since when the backlog is small; ``None`` if it is not."""
    since_s: float | None = None
    for vote in votes:
        if vote.backlog > vote.load * checkpoint_interval_s:
            since_s = None
        elif since_s is None:
            since_s = vote.at_seconds
    return since_s


def _process_hours(history: History) -> float:
    up_since_s: dict[str, float] = {}
    whole_s = 0.0
    for service in history.services:
        if service.is_up:
            up_since_s.setdefault(service.owner_id, service.at_s)
        else:
            whole_s += service.at_s - up_since_s.pop(service.owner_id, service.at_s)
    whole_s += sum(history.duration_s - since_s for since_s in up_since_s.values())
    return whole_s / HOUR_S

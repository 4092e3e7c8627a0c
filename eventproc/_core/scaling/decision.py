"""How many processes a group needs: one vote for each reading.

    load of a partition = min(arrival + backlog / drain_target, rate_of_one)
    replicas = clamp(ceil(sum of the loads / rate_of_one), min, max)

The drain target counts from the vote, so the time that a process takes to start is part of it.

Rule 1: what is not known changes nothing. Without an answer, while partitions change hands, while
nothing is handled, and until the rate of one process is known, the last vote stands.
Rule 2: more processes only while the group is behind and does not catch up. A group that was
restarted or was without its store has a backlog, but drains it.
Rule 3: fewer processes only when the backlog is drained or constant, and when each vote for a whole
cool-down was for fewer: then the highest of these.
Rule 4: the vote rises again only when the processes of the last vote have joined.
Rule 5: a vote of zero rises as soon as the hub has an event that no checkpoint covers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from math import ceil, inf
from typing import Annotated, Final

from eventproc._base.settings import Within, check_settings, value_text
from eventproc._core.scaling.readings import Rates, Reading, extended, rates_between
from eventproc.errors import ConfigurationError

PATIENCE: Final = 4
"""A backlog that needs longer than this many drain targets counts as one that does not drain."""

STEADY: Final = 0.1
"""Arrival and drain that differ by less than this part are the same: checkpoints come in steps."""

SAMPLE_WEIGHT: Final = 0.5
"""The weight of a new measurement of the rate of one process against the former ones."""

_POSITIVE: Final = Within(above=timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRules:
    """The limits and targets that an operator sets for a group."""

    replicas_min: Annotated[int, Within(least=0)] = 1
    """The fewest processes; with 0, a group without events needs none."""

    replicas_max: Annotated[int, Within(least=1)] = 100
    """The most processes. A hub with fewer partitions needs no more than it has partitions."""

    drain_target: Annotated[timedelta, _POSITIVE] = timedelta(minutes=5)
    """How soon a backlog should be drained."""

    cooldown: Annotated[timedelta, Within(least=timedelta(0))] = timedelta(minutes=5)
    """How long fewer processes must be enough before there are fewer."""

    start_time: Annotated[timedelta, Within(least=timedelta(0))] = timedelta(seconds=30)
    """How long a new process takes until it handles events; the backlog grows until then."""

    checkpoint_interval: Annotated[timedelta, _POSITIVE] = timedelta(seconds=30)
    """The longest time between two checkpoints of a partition. Rates are averages over this time,
    and what a process handles within it is no backlog."""

    rate_of_one: Annotated[float, Within(above=0)] | None = None
    """Events per second that one process can handle; ``None``: measure it."""

    def __post_init__(self) -> None:
        """Refuse rules that contradict each other."""
        check_settings(self)
        if self.replicas_min > self.replicas_max:
            raise ConfigurationError(
                "lower the first or raise the other",
                setting="replicas_min",
                value=str(self.replicas_min),
                beside={"replicas_max": str(self.replicas_max)},
            )
        if self.start_time >= self.drain_target:
            raise ConfigurationError(
                "no backlog can be drained before a process has started. Raise the second, or "
                "lower the first if processes start sooner",
                setting="start_time",
                value=value_text(self.start_time),
                beside={"drain_target": value_text(self.drain_target)},
            )


class Reason(Enum):
    """Why a vote is what it is."""

    NOT_READ = "the group was not read yet"
    NO_ANSWER = "store or hub did not answer, so the number stays"
    FIRST_READING = "first reading: as many as there are"
    MEASURING = "rates are measured: too few readings since members or owners changed"
    RATE_UNKNOWN = "the rate of one process is not known yet, and is measured when it is behind"
    STARTING = "behind, and processes that were asked for are not there yet"
    NO_PROGRESS = "behind, but nothing is handled, so more processes would not help"
    DRAINING = "behind, but the backlog drains"
    GROWING = "behind, and the backlog grows although there should be enough processes"
    COOLING_DOWN = "fewer would be enough, but not for long enough yet"
    ENOUGH = "as many as are needed"
    SCALED_OUT = "behind, and the backlog does not drain in time"
    SCALED_IN = "fewer were enough for the whole cool-down"
    LIMITS = "the limits require it"
    WOKEN = "the hub has events that no checkpoint covers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One vote, and what it is based on."""

    replicas: int | None
    """The number of processes; ``None``: not known, because there was no answer so far."""

    reason: Reason
    backlog: int | None = None
    """Retained events that no checkpoint covers; ``None``: not known."""

    arrival_per_s: float | None = None
    drain_per_s: float | None = None
    rate_of_one: float | None = None
    """As set or measured, in events per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingMemory:
    """What votes depend on besides the newest reading."""

    replicas: int | None = None
    """The last vote."""

    readings: tuple[Reading, ...] = ()
    """Comparable ones, in order; the last one is always there, unless it was not answered."""

    measured_from_s: float = -inf
    """Readings from before this time do not count, because the group had just changed."""

    rate_of_one: float | None = None
    """As measured so far."""

    fewer_since_s: float | None = None
    """When fewer processes began to be enough; ``None``: they are not."""

    fewer_most: int = 0
    """The highest vote since then."""


def decide(
    memory: ScalingMemory, reading: Reading | None, rules: ScalingRules
) -> tuple[ScalingMemory, Decision]:
    """Vote on the number of processes.

    Args:
        memory: From the last call; ``ScalingMemory()`` for the first one.
        reading: ``None`` if the store or the hub did not answer.
        rules: May differ from those of the last call.

    Returns:
        The memory for the next call, and the vote.
    """
    if reading is None:
        # During an outage, neither a rate nor a need can be measured.
        memory = replace(memory, readings=(), fewer_since_s=None)
        return memory, Decision(replicas=memory.replicas, reason=Reason.NO_ANSWER)
    span_s = rules.checkpoint_interval.total_seconds()
    since_s = memory.measured_from_s
    if _has_changed(memory, reading):
        since_s = reading.at_s + span_s
    readings = extended(memory.readings, reading, since_s=since_s, span_s=span_s)
    rates = None
    if readings[-1].at_s - readings[0].at_s >= span_s:
        rates = rates_between(readings, written_within_s=span_s)
    memory = replace(
        memory,
        readings=readings,
        measured_from_s=since_s,
        rate_of_one=_learned(memory, reading, rates, rules),
    )
    memory, replicas, reason = _vote(memory, reading, rates, rules)
    limited = _clamp(replicas, reading, rules)
    if limited != replicas and memory.replicas in {limited, replicas}:
        reason = Reason.LIMITS
    memory = replace(memory, replicas=limited)
    known = rates or rates_between(readings, written_within_s=span_s)
    return memory, Decision(
        replicas=limited,
        reason=reason,
        backlog=reading.backlog,
        arrival_per_s=None if known is None else known.arrival,
        drain_per_s=None if known is None else known.drain,
        rate_of_one=memory.rate_of_one,
    )


def _has_changed(memory: ScalingMemory, reading: Reading) -> bool:
    """Whether owners or pauses changed since the last reading, or may have during an outage."""
    if not memory.readings:
        return memory.replicas is not None
    return not reading.is_comparable_with(memory.readings[-1])


def _learned(
    memory: ScalingMemory, reading: Reading, rates: Rates | None, rules: ScalingRules
) -> float | None:
    """Return the rate of one process, as set, or as measured up to now."""
    if rules.rate_of_one is not None:
        return rules.rate_of_one
    known = memory.rate_of_one
    if rates is None or not reading.member_ids:
        return known
    if rates.of_one is not None and not _is_steady(rates):
        # Not if it drains as fast as events arrive: then the backlog only waits for checkpoints.
        return rates.of_one if known is None else known + SAMPLE_WEIGHT * (rates.of_one - known)
    # Each process keeps up with its share, so it can do at least that.
    share = min(rates.arrival, rates.drain) / len(reading.member_ids)
    return None if known is None else max(known, share)


def _vote(
    memory: ScalingMemory, reading: Reading, rates: Rates | None, rules: ScalingRules
) -> tuple[ScalingMemory, int, Reason]:
    """Return the vote before it is limited."""
    current = memory.replicas
    if current is None:
        # Without a process, a backlog is a reason to start one; with some, wait for rates.
        found = len(reading.member_ids)
        return memory, found or int(reading.backlog > 0), Reason.FIRST_READING
    if current == 0:
        if reading.backlog == 0:
            return memory, 0, Reason.ENOUGH
        return memory, _needed({}, _backlogs(reading), memory, rules) or 1, Reason.WOKEN
    if rates is None:
        waiting = replace(memory, fewer_since_s=None)
        return waiting, current, Reason.MEASURING
    is_behind = reading.backlog > rates.drain * rules.checkpoint_interval.total_seconds()
    if is_behind:
        more = _more(memory, reading, rates, rules)
        if more is not None:
            replicas, reason = more
            return replace(memory, fewer_since_s=None), replicas, reason
    return _fewer(memory, reading, rates, rules)


def _more(
    memory: ScalingMemory, reading: Reading, rates: Rates, rules: ScalingRules
) -> tuple[int, Reason] | None:
    """Return the vote of a group that is behind; ``None`` if its backlog is constant and small."""
    current = memory.replicas
    assert current is not None, "there was a first vote"
    if len(reading.member_ids) < current:
        return current, Reason.STARTING
    if rates.drain == 0:
        return current, Reason.NO_PROGRESS
    surplus = rates.drain - rates.arrival
    drained_in_s = reading.backlog / surplus if surplus > 0 else inf
    if drained_in_s <= PATIENCE * rules.drain_target.total_seconds():
        return current, Reason.DRAINING
    start_s = rules.start_time.total_seconds()
    by_the_start = {
        p: backlog + max(0.0, rates.arrivals[p] - rates.drains[p]) * start_s
        for p, backlog in _backlogs(reading).items()
    }
    needed = _needed(rates.arrivals, by_the_start, memory, rules)
    if needed is None:
        return current, Reason.RATE_UNKNOWN
    if needed > current:
        return needed, Reason.SCALED_OUT
    return None if _is_steady(rates) else (current, Reason.GROWING)


def _fewer(
    memory: ScalingMemory, reading: Reading, rates: Rates, rules: ScalingRules
) -> tuple[ScalingMemory, int, Reason]:
    """Return the vote of a group that keeps up, and since when fewer processes are enough."""
    current, now_s = memory.replicas, reading.at_s
    assert current is not None, "there was a first vote"
    arrivals = {p: arrival * (1 + STEADY) for p, arrival in rates.arrivals.items()}
    needed = _needed(arrivals, _backlogs(reading), memory, rules)
    if rates.arrival == 0 and reading.backlog == 0:
        needed = 0  # Whatever the rate of a process is.
    if needed is None:
        return replace(memory, fewer_since_s=None), current, Reason.RATE_UNKNOWN
    needed = _clamp(needed, reading, rules)
    if needed >= current:
        return replace(memory, fewer_since_s=None), current, Reason.ENOUGH
    if memory.fewer_since_s is None:
        memory = replace(memory, fewer_since_s=now_s, fewer_most=needed)
    memory = replace(memory, fewer_most=max(needed, memory.fewer_most))
    assert memory.fewer_since_s is not None, "it was just set"
    if now_s - memory.fewer_since_s < rules.cooldown.total_seconds():
        return memory, current, Reason.COOLING_DOWN
    return replace(memory, fewer_since_s=None), memory.fewer_most, Reason.SCALED_IN


def _backlogs(reading: Reading) -> dict[str, float]:
    return {p: partition.backlog for p, partition in reading.partitions.items()}


def _needed(
    arrivals: Mapping[str, float],
    backlogs: Mapping[str, float],
    memory: ScalingMemory,
    rules: ScalingRules,
) -> int | None:
    """Return the number of processes that drain the backlogs in time; ``None``: not known.

    A partition that is more than one process can handle counts as one process: more do not help it.

    A process has whole partitions. So this is the formula rounded up to the next number with which
    the process that has the most of them keeps up as well, if all have the same load.
    """
    rate = memory.rate_of_one
    if rate is None:
        return None
    working_s = (rules.drain_target - rules.start_time).total_seconds()
    load = sum(
        min(arrivals.get(p, 0.0) + backlog / working_s, rate) for p, backlog in backlogs.items()
    )
    if load == 0:
        return 0
    count = len(backlogs)
    most_partitions = max(1, int(count * rate / load))
    return ceil(count / most_partitions)


def _clamp(replicas: int, reading: Reading, rules: ScalingRules) -> int:
    """Return the number within the limits; the minimum wins over the number of partitions."""
    return max(rules.replicas_min, min(replicas, rules.replicas_max, len(reading.partitions)))


def _is_steady(rates: Rates) -> bool:
    return abs(rates.drain - rates.arrival) <= STEADY * rates.arrival

"""What is drawn for one rehearsal: its events, its hosts and its faults."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import Any, Final

NO_EVENT: Final = -1


class Kind(StrEnum):
    """A fault. All but the last two happen to the host that has reached the fault's moment."""

    CRASH = "crash"
    """It is killed; another host starts."""

    FREEZE = "freeze"
    """It does nothing for some time, and then goes on."""

    LEAVE = "leave"
    """It stops gracefully and exits; another host starts."""

    CUT_OFF = "cut off"
    """The store does not answer it for some time."""

    STEAL = "steal"
    """Another host steals the partition."""

    FAIL = "fail"
    """The effect or the call raises an error."""

    SLOW = "slow"
    """The effect takes long."""

    JOIN = "join"
    """Another host starts."""

    OUTAGE = "outage"
    """The store, or the hub if the moment is an even one, answers nobody for some time."""


WEIGHTS: Final = dict.fromkeys((Kind.CRASH, Kind.FREEZE, Kind.LEAVE, Kind.SLOW, Kind.STEAL), 2)
"""How often a kind is drawn, if not once."""

DELAYS_S: Final = (0.0, 0.0, 0.0, 0.5, 5.0, 20.0)
SPANS_S: Final = (5.0, 20.0, 70.0, 150.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault, at a moment: the beginning or end of a call of the handler, or an effect."""

    moment: int
    """Which moment, counted over the whole rehearsal."""

    kind: Kind
    is_before: bool
    """At an effect: whether before it is carried out, or after it and before its answer."""

    delay_s: float
    """How long after the moment."""

    span_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One rehearsal, apart from the handler. The same plan gives the same history."""

    events: tuple[int, ...]
    """The numbers of the events, in the order in which they are published."""

    partition_count: int = 1
    host_count: int = 1
    batch_size_max: int = 1
    gap_s: float = 0.0
    """Seconds between two events."""

    latency_s: float = 0.01
    """Seconds for the way of a request to what the handler changes, and for the way back."""

    poison: int = NO_EVENT
    """The number of an event whose body cannot be decoded."""

    faults: tuple[Fault, ...] = ()


def draw(seed: int, *, has_poison: bool) -> Plan:
    """Draw a plan; with *has_poison*, some have an event that cannot be handled."""
    rng = Random(f"rehearsal/{seed}")  # noqa: S311 - no secrets
    count = rng.choice((6, 12, 24))
    events = list(range(1, count + 1))
    if rng.choice((True, False)):
        Random(rng.randint(1, 3)).shuffle(events)  # noqa: S311 - few orders: each is judged once
    kinds, weights = list(Kind), [WEIGHTS.get(kind, 1) for kind in Kind]
    faults: list[Fault] = []
    for kind in rng.choices(kinds, weights, k=rng.randint(1, 5)):
        drawn = rng.randint(1, 3 * count)
        fault = Fault(
            moment=rng.choice((faults[-1].moment if faults else drawn, drawn)),  # some coincide
            kind=kind,
            is_before=rng.choice((True, False)),
            delay_s=rng.choice(DELAYS_S),
            span_s=rng.choice(SPANS_S),
        )
        faults.append(fault)
    return Plan(
        events=tuple(events),
        partition_count=rng.randint(1, 3),
        host_count=rng.randint(1, 3),
        batch_size_max=rng.choice((1, 2, 3, 7, 100)),
        gap_s=rng.choice((0.0, 0.2, 5.0)),
        latency_s=rng.choice((0.01, 0.3, 2.0)),
        poison=rng.choice(events) if has_poison and rng.choice((True, False)) else NO_EVENT,
        faults=tuple(sorted(faults, key=lambda fault: fault.moment)),
    )


def simpler(plan: Plan) -> Iterator[Plan]:
    """Yield plans that are simpler in one respect, the greatest simplifications first."""
    others = [plan.faults[:n] + plan.faults[n + 1 :] for n in range(len(plan.faults))]
    changes: list[dict[str, Any]] = [{"faults": faults} for faults in others]
    size = len(plan.events) // 2
    while size:
        changes += (
            {"events": plan.events[:first] + plan.events[first + size :]}
            for first in range(0, len(plan.events), size)
        )
        size //= 2
    changes += (
        {"partition_count": 1},
        {"host_count": 1},
        {"batch_size_max": 1},
        {"gap_s": 0.0},
        {"latency_s": 0.01},
        {"poison": NO_EVENT},
        {"events": tuple(sorted(plan.events))},
    )
    for number, fault in enumerate(plan.faults):
        moments = {1, fault.moment // 2, fault.moment - 1} - {0, fault.moment}
        simple = [replace(fault, moment=moment) for moment in sorted(moments)]
        changes += (
            {"faults": (*plan.faults[:number], one, *plan.faults[number + 1 :])}
            for one in [*simple, replace(fault, delay_s=0.0)]
        )
    for change in changes:
        candidate = replace(plan, **change)
        if candidate != plan:
            yield candidate

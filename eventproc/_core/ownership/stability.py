"""For how long has something been true? By this processor's own clock, from poll to poll.

A processor acts when the plan's input has been the same for so long that others have seen it, too.
The input is what the plan depends on besides the owners: the members, or the number of the
published plan that they follow.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeVar

from eventproc._core.ownership.rules import Rules

K = TypeVar("K", bound=Hashable)

STABLE_AFTER_CYCLES: Final = 0.8
"""How many rebalance intervals an input must last before this processor acts on it: two polls then
showed the same members, and members that joined at the same time have seen each other."""

UNSTABLE_CYCLES_MAX: Final = 4
"""How many rebalance intervals this processor waits at most, if the input keeps changing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInputObservation:
    """Since when the plan's input has been the same."""

    plan_input: Hashable
    since_s: float
    seen_s: float
    """When a poll last showed it."""

    unstable_since_s: float
    """Since when the input has kept changing."""

    unconfirmed_count: int = 0
    """How many inputs in a row, before this one, were each shown by a single poll."""

    def stable_at_s(self, rules: Rules) -> float:
        """Return when to act: the input is not new any more, or the wait has been long."""
        if self.unconfirmed_count >= UNSTABLE_CYCLES_MAX:
            return self.since_s
        rebalance_s = rules.rebalance_interval.total_seconds()
        return min(
            self.since_s + STABLE_AFTER_CYCLES * rebalance_s,
            self.unstable_since_s + UNSTABLE_CYCLES_MAX * rebalance_s,
        )

    def is_unstable(self, now_s: float, rules: Rules) -> bool:
        """Whether to wait before acting."""
        return now_s < self.stable_at_s(rules)


UNSEEN: Final = PlanInputObservation(
    plan_input=None,
    since_s=float("-inf"),
    seen_s=float("inf"),
    unstable_since_s=float("-inf"),
)
"""What is known before an input was seen: nothing to wait for."""


def stable_in_s(seen: Sequence[PlanInputObservation], rules: Rules, now_s: float) -> float:
    """Return in how many seconds the first of them has lasted long enough; 0 if all have."""
    waits_s = [one.stable_at_s(rules) - now_s for one in seen]
    return min((wait_s for wait_s in waits_s if wait_s > 0), default=0.0)


def observe_plan_input(
    known: PlanInputObservation, plan_input: Hashable, rules: Rules, now_s: float
) -> PlanInputObservation:
    """Note since when the plan's input has been this one.

    The input may be different at every poll. So this counts the inputs that only one poll showed:
    after ``UNSTABLE_CYCLES_MAX`` of them in a row the wait ends, too.
    """
    if known.plan_input == plan_input:
        return replace(known, seen_s=now_s)
    new = PlanInputObservation(
        plan_input=plan_input, since_s=now_s, seen_s=now_s, unstable_since_s=now_s
    )
    stable_after_s = STABLE_AFTER_CYCLES * rules.rebalance_interval.total_seconds()
    if known.seen_s - known.since_s >= stable_after_s:
        return new
    if now_s - known.since_s >= stable_after_s:
        return replace(new, unconfirmed_count=known.unconfirmed_count + 1)
    return replace(
        new,
        unstable_since_s=known.unstable_since_s,
        unconfirmed_count=known.unconfirmed_count,
    )


def since(known: Mapping[K, float], true_now: Collection[K], now_s: float) -> dict[K, float]:
    """Return since when each of these has been true."""
    return {key: known.get(key, now_s) for key in true_now}


def longer_than(span: timedelta, since_s: Mapping[K, float], now_s: float) -> frozenset[K]:
    """Return what has been true for longer than *span*."""
    return frozenset(key for key, at_s in since_s.items() if now_s - at_s > span.total_seconds())

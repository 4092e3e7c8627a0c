"""Is a partition stalled, and what to do about it?

Rule 1: a partition is stalled if it has work and completed none of it for ``stall_timeout``,
unless it is paused, rate-limited or waiting for its lease.
Rule 2: if a call of the handler completes nothing for that long, the partition is given up at once:
a new receiver would not help. Otherwise the stall is logged and the receiver opened again; the
partition is given up after another ``stall_timeout``.
"""

from dataclasses import dataclass
from enum import Enum


class StallStep(Enum):
    """What to do now."""

    NOTHING = "nothing"
    RESTART = "restart"
    """Log the stall, and open the receiver again."""

    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The state of one partition."""

    idle_s: float
    """For how many seconds no event was completed, or skipped as completed before."""

    call_s: float | None
    """For how many seconds a call of the handler has completed nothing; ``None`` if there is no
    call under way."""

    has_work: bool
    """Whether the hub has events that are not handled."""

    is_held_back: bool
    """Whether it is paused, or waits for a rate limit or for the lease."""

    was_restarted: bool
    """Whether the receiver was opened again since an event was completed."""


def stall_step(condition: Condition, stall_timeout_s: float) -> StallStep:
    """Return what to do about one partition."""
    if condition.call_s is not None and condition.call_s >= stall_timeout_s:
        return StallStep.GIVE_UP
    if condition.is_held_back or not condition.has_work:
        return StallStep.NOTHING
    patience_s = 2 * stall_timeout_s if condition.was_restarted else stall_timeout_s
    if condition.idle_s < patience_s:
        return StallStep.NOTHING
    return StallStep.GIVE_UP if condition.was_restarted else StallStep.RESTART

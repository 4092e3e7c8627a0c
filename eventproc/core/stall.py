"""Is a partition stuck, and what is to be done about it?

Rule 1: stuck is who has work and got none of it done for ``stall_timeout``. Who is paused, or held
back by a rate limit or by an untrusted lease, is not.
Rule 2: a call of the handler that gets nothing done for that long is given up at once, with the
partition: nothing in place could help. Anything else is first reported, its receiver opened again,
and given up when another ``stall_timeout`` has passed.
"""

from dataclasses import dataclass
from enum import Enum


class StallStep(Enum):
    """What to do now."""

    NOTHING = "nothing"
    RESTART = "restart"
    """Say so, and open the receiver again."""

    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How a partition does, as far as this matters."""

    idle_s: float
    """Since when nothing got done, and nothing was seen to be done already."""

    call_s: float | None
    """For how long some call of the handler got nothing done; ``None``: none is under way."""

    has_work: bool
    """Whether the hub has events that are not handled."""

    is_held_back: bool
    """Paused, or waiting for a rate limit or for the lease."""

    was_restarted: bool
    """Whether the receiver was opened again since anything got done."""


def stall_step(condition: Condition, stall_timeout_s: float) -> StallStep:
    """Judge one partition."""
    if condition.call_s is not None and condition.call_s >= stall_timeout_s:
        return StallStep.GIVE_UP
    if condition.is_held_back or not condition.has_work:
        return StallStep.NOTHING
    patience_s = 2 * stall_timeout_s if condition.was_restarted else stall_timeout_s
    if condition.idle_s < patience_s:
        return StallStep.NOTHING
    return StallStep.GIVE_UP if condition.was_restarted else StallStep.RESTART

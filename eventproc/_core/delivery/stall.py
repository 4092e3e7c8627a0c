"""Is a partition stalled, and what to do about it?

Rule 1: a partition is stalled if it has work and completed none of it for ``stall_timeout``, unless
it is paused, rate-limited or waiting for its lease; or if a call of the handler has completed
nothing for that long.
Rule 2: a stall is reported once. The receiver is opened again only if the partition waits for it:
otherwise a new one would not help, and a queue would deliver again what is under way.
Rule 3: if no event can be received for that long, it is reported as well, because nobody knows
whether there is work.
Rule 4: with ``failover_timeout``, the pump stops after that time, so that another member can serve
the partition. Not because of Rule 3: a hub that is away is away for the other members, too.
"""

from dataclasses import dataclass
from enum import Enum


class StallStep(Enum):
    """What to do now."""

    NOTHING = "nothing"
    """It is not stalled, or not any more."""

    REPORT = "report"
    """Log and count the stall."""

    REOPEN = "reopen"
    """Open the receiver again, and report the stall if that was not done."""

    WAIT = "wait"
    """The stall lasts, and there is nothing more to do."""

    ABANDON = "abandon"
    """Stop the pump, so that another member can serve the partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The state of one partition."""

    idle_s: float
    """For how many seconds no event was completed, or received for the first time."""

    call_s: float | None
    """For how many seconds a call of the handler has completed nothing; ``None`` if there is no
    call under way."""

    has_work: bool
    """Whether events were received that are not done, or the hub has more."""

    is_starved: bool
    """Whether it waits for events that the hub has."""

    is_held_back: bool
    """Whether it is paused, or waits for a rate limit or for the lease."""

    failing_s: float
    """For how many seconds no event could be received; 0: the receiver does not fail."""

    is_reported: bool
    """Whether this stall was reported."""

    was_reopened: bool
    """Whether the receiver was opened again since the stall began."""


def stall_step(
    condition: Condition, stall_timeout_s: float, failover_timeout_s: float | None
) -> StallStep:
    """Return what to do about one partition."""
    waited_s = condition.idle_s if condition.has_work and not condition.is_held_back else 0.0
    stalled_s = max(waited_s, condition.call_s or 0.0)
    cut_off_s = 0.0 if condition.is_held_back else condition.failing_s
    if max(stalled_s, cut_off_s) < stall_timeout_s:
        return StallStep.NOTHING
    if failover_timeout_s is not None and stalled_s >= failover_timeout_s:
        return StallStep.ABANDON
    if condition.is_starved and waited_s >= stall_timeout_s and not condition.was_reopened:
        return StallStep.REOPEN
    return StallStep.WAIT if condition.is_reported else StallStep.REPORT

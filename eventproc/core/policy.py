"""How long to wait: before a checkpoint, before the next attempt, and because of a rate limit."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

BURST_S: Final = 1.0
"""How many seconds' worth of events may be delivered at once after a pause."""


def checkpoint_due_in_s(
    *,
    handled_count: int,
    oldest_age_s: float,
    max_events: int | None,
    interval: timedelta | None,
    max_uncommitted_events: int | None,
) -> float | None:
    """Seconds until uncommitted progress must be written; ``None``: not before more is handled.

    A write is due when there are *max_events* uncommitted events, when the oldest is *interval*
    old, or when handling would have to wait because of *max_uncommitted_events*.
    """
    if handled_count == 0:
        return None
    if max_events is not None and handled_count >= max_events:
        return 0.0
    if not has_room(handled_count, max_events, interval, max_uncommitted_events):
        return 0.0
    return None if interval is None else max(0.0, interval.total_seconds() - oldest_age_s)


def has_room(
    handled_count: int,
    max_events: int | None,
    interval: timedelta | None,
    max_uncommitted_events: int | None,
) -> bool:
    """Whether more events may be handled while *handled_count* are uncommitted.

    Always true without automatic checkpoints: no write would end the wait.
    """
    is_manual = max_events is None and interval is None
    return max_uncommitted_events is None or is_manual or handled_count < max_uncommitted_events


def backoff_s(attempt: int, *, initial: timedelta, maximum: timedelta, chance: float) -> float:
    """Seconds to wait after the ``attempt``-th failure (from 1): doubled each time, capped.

    ``chance`` (0 to 1) spreads the wait between half of it and all of it, so that processors that
    failed at the same time do not retry at the same time.
    """
    doublings = min(attempt - 1, 62)
    whole_s = min(initial.total_seconds() * 2.0**doublings, maximum.total_seconds())
    return whole_s * (0.5 + 0.5 * chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A limit in events per second, and how much of it is used.

    The generic cell rate algorithm (ITU-T I.371) in its virtual scheduling form: instead of a
    count of tokens it keeps the time at which the bucket would be full again.
    """

    per_second: float
    full_at_s: float = float("-inf")

    def take(self, count: int, now_s: float) -> tuple[float, "Bucket"]:
        """Return the seconds to wait before delivering *count* events, and the bucket after that.

        A batch larger than the bucket does not wait until it would fit; later batches wait
        longer instead.
        """
        full_at_s = max(self.full_at_s, now_s) + count / self.per_second
        wait_s = max(0.0, full_at_s - now_s - max(BURST_S, count / self.per_second))
        return wait_s, replace(self, full_at_s=full_at_s)

"""How long to wait: before the next attempt, and because of a rate limit."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

BURST_S: Final = 1.0
"""How many seconds' worth of events may be delivered at once after a pause."""


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

"""A limit in events per second, as a value."""

from dataclasses import dataclass, replace
from typing import Final

BURST_S: Final = 1.0
"""How many seconds' worth of events may be delivered at once after a pause."""


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

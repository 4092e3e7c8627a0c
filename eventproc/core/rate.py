"""How fast may events be handed over? A bucket of tokens, as a value; time is passed in."""

from dataclasses import dataclass, replace
from typing import Final

BURST_S: Final = 1.0
"""What was not used in this time may be used later at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A limit of so many events in a second, and how much of it is used.

    The generic cell rate algorithm (ITU-T I.371) in its virtual scheduling form: instead of a
    count of tokens it keeps the time at which the bucket would be full again.
    """

    per_second: float
    full_at_s: float = float("-inf")

    def take(self, count: int, now_s: float) -> tuple[float, "Bucket"]:
        """Return how long to wait before these events may go, and the bucket without them.

        More than a bucket holds at once goes, too; those after it wait for it.
        """
        full_at_s = max(self.full_at_s, now_s) + count / self.per_second
        wait_s = max(0.0, full_at_s - now_s - max(BURST_S, count / self.per_second))
        return wait_s, replace(self, full_at_s=full_at_s)

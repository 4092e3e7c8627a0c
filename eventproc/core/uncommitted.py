"""The handled events that no checkpoint covers: when one is due, and whether there may be more."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(slots=True, kw_only=True)
class UncommittedEvents:
    """Counts them, and compares them with the limits of the checkpoint policy."""

    max_events: int | None
    interval: timedelta | None
    max_uncommitted_events: int | None
    count: int = 0
    _oldest_at_s: float = 0.0

    def add(self, count: int, now_s: float) -> bool:
        """Count events that were handled now; return whether a checkpoint may be due earlier.

        That is so for the first of them, and when a limit is reached: others change nothing.
        """
        is_first = not self.count
        if is_first:
            self._oldest_at_s = now_s
        self.count += count
        return is_first or self._is_limit_reached

    @property
    def _is_limit_reached(self) -> bool:
        return (self.max_events is not None and self.count >= self.max_events) or not self.has_room

    def remove(self, count: int, now_s: float) -> None:
        """Count events that a checkpoint covers; those that are left count as handled now."""
        self.count -= count
        self._oldest_at_s = now_s

    def age_s(self, now_s: float) -> float:
        """Return the age in seconds of the oldest of them; 0 if there is none."""
        return now_s - self._oldest_at_s if self.count else 0.0

    def due_in_s(self, now_s: float) -> float | None:
        """Return in how many seconds to write a checkpoint; ``None``: not before there are more.

        It is due when there are ``max_events``, when the oldest is ``interval`` old, or when there
        is no room.
        """
        if self.count == 0:
            return None
        if self._is_limit_reached:
            return 0.0
        if self.interval is None:
            return None
        return max(0.0, self.interval.total_seconds() - self.age_s(now_s))

    @property
    def has_room(self) -> bool:
        """Whether more events may be handled: fewer than ``max_uncommitted_events`` are counted.

        Always true without automatic checkpoints: no write would end the wait.
        """
        is_manual = self.max_events is None and self.interval is None
        limit = None if is_manual else self.max_uncommitted_events
        return limit is None or self.count < limit

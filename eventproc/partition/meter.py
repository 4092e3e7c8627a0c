"""How much work a partition makes, for placements that share by load."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from eventproc.core.placement.loads import WorkDone
from eventproc.models import ReceivedEvent, body_bytes


class Clock(Protocol):
    """The clock of an event loop."""

    def time(self) -> float:
        """Return seconds of a monotonic clock."""


class WorkMeter:
    """Adds up the handler calls and events of one pump."""

    def __init__(self, *, counts_bytes: bool = False) -> None:
        """Begin at zero. Counting bytes needs the body of each event, so it is off by default."""
        self._counts_bytes = counts_bytes
        self._seconds = 0.0
        self._event_count = 0
        self._byte_count = 0
        self._active_count = 0
        self._at_s = 0.0

    @contextmanager
    def call(self, clock: Clock) -> Iterator[None]:
        """Measure a call of the handler; calls at the same time add up."""
        self._advance(clock.time(), 1)
        try:
            yield
        finally:
            self._advance(clock.time(), -1)

    def _advance(self, now_s: float, change: int) -> None:
        self._seconds += self._active_count * (now_s - self._at_s)
        self._at_s = now_s
        self._active_count += change

    def handled(self, before: Sequence[ReceivedEvent], left: Sequence[ReceivedEvent]) -> None:
        """Count the events of *before* that are not *left*."""
        self._event_count += len(before) - len(left)
        if self._counts_bytes:
            self._byte_count += body_bytes(before) - body_bytes(left)

    def work_at(self, now_s: float) -> WorkDone:
        """Return what was done until now; a call under way counts up to now."""
        self._advance(now_s, 0)
        return WorkDone(busy=self._seconds, events=self._event_count, bytes=self._byte_count)

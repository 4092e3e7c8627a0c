"""How far a query is behind its hub, for the query's progress."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eventproc.errors import SourceUnavailableError
from eventproc.models import EventPosition
from spark_integration.source.hub import Hub
from spark_integration.source.planning import Offsets, PartitionSpan, begins_of, waiting_count

LOOK_UP_EVERY_S: Final = 10.0
"""Shortest time between two look-ups: each opens a receiver on every partition that is behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How many events the hub has after a position, and how old they are."""

    events: int
    seconds: float | None
    """The age of the first of these events, relative to the newest one of its partition; the
    highest of all partitions; ``None`` if it is not known."""


class LagMeter:
    """Measures the lag of one query. Not thread-safe."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._looked_up_at_s = float("-inf")
        self._seconds: float | None = None

    def lag(self, position: Offsets, spans: Mapping[str, PartitionSpan]) -> Lag:
        """Return the lag at a position; look its seconds up every ``LOOK_UP_EVERY_S`` at most."""
        count = waiting_count(position, spans)
        if not count:
            self._looked_up_at_s = float("-inf")
            return Lag(events=0, seconds=0.0)
        if time.monotonic() - self._looked_up_at_s >= LOOK_UP_EVERY_S:
            self._seconds = self._look_up(position, spans)
            self._looked_up_at_s = time.monotonic()
        return Lag(events=count, seconds=self._seconds)

    def _look_up(self, position: Offsets, spans: Mapping[str, PartitionSpan]) -> float | None:
        begins = begins_of(position, spans)
        firsts = {
            p: EventPosition.from_sequence_number(begins[p], is_inclusive=True)
            for p, span in spans.items()
            if span.next > begins[p]
        }
        try:
            events = self._hub.first_events_now(firsts)
        except SourceUnavailableError:
            return None  # The planner, which asks the same hub, logs an outage.
        behind = [
            (newest - events[p].enqueued_time).total_seconds()
            for p in firsts
            if (newest := spans[p].last_enqueued_time) is not None
        ]
        return max(0.0, *behind) if behind else None

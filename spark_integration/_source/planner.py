"""Plans where micro-batches end: the driver's part of the streaming source, without Spark's types.

Rule 1: while the hub does not answer, batches are empty; only an outage longer than
``operationTimeout`` fails the query.
Rule 2: the hub is polled at most once per ``pollInterval`` and within the service's quota, and only
when the known events are planned or too few for a batch.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from eventproc._base.logs import ConditionLogger, get_logger
from eventproc._base.retries import Backoff
from eventproc.errors import SourceRejectedError, SourceUnavailableError
from eventproc.models import EventPosition
from spark_integration._errors import EventsLostError
from spark_integration._options import EVENTS_PER_PARTITION, Alignment, SourceOptions
from spark_integration._source.aligner import Aligner
from spark_integration._source.hub import Hub, Outage, PartitionEnds, span_of
from spark_integration._source.planning import (
    Offsets,
    PartitionSpan,
    advance,
    begins_of,
    beyond_end,
    expired,
    is_due,
    of_former_hub,
    poll_interval_s,
    waiting_count,
)
from spark_integration._source.reading import lost_message, recreated_message, younger_message

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


REQUESTS_PER_SECOND: Final = 25
"""Half of the service's quota, which is 50 requests for properties of a partition per second, for
all clients of a namespace together."""

PAUSES: Final = Backoff(maximum=timedelta(seconds=1))
"""Waits during an outage. They are short, because each is within a call from Spark, and Spark
cannot stop a query during a call."""

REPORT_AGE_MAX_S: Final = 10.0
"""The ends of partitions are requested again for a lag if they are older than this."""

Spans = Mapping[str, PartitionSpan]


class StreamPlanner:
    """Plans the batches of one query. Not thread-safe."""

    def __init__(self, options: SourceOptions, hub: Hub | None = None) -> None:
        self._options = options
        self._hub = hub or Hub(options)
        self._aligner = Aligner(self._hub)
        self._lag = LagMeter(self._hub)
        self._known: Spans = {}
        self._known_at = float("-inf")
        self._planned_at = float("-inf")
        """When the last batch was planned."""

        self._planned: Offsets | None = None
        self._is_final = False
        self._logged: set[tuple[str, int]] = set()
        self._log = get_logger("eventproc.spark", consumer_group=options.consumer_group)
        self._ends_outage, self._lookup_outage = (
            Outage(
                ConditionLogger(self._log, "hub_failed", "hub_recovered"), options.patience, PAUSES
            )
            for _ in range(2)
        )

    @property
    def hub_name(self) -> str:
        """The hub, as stored in the query's offsets."""
        return self._hub.name

    def first(self) -> dict[str, int]:
        """Return the offset at which a new query starts."""
        self._hub.check()
        ends = self._hub.partition_ends()
        self._remember(ends)  # even if the end is fixed: ``latest`` may be after it
        return self._hub.find(self._options.starting, ends)

    def hub_created_at(self, noted: datetime | None = None) -> datetime | None:
        """Return when the hub was created: the later of what an offset notes and the hub says.

        After a fail-over another region may name an earlier time; it is not taken over, because
        the way back would look like a hub that was created again.
        """
        known = [at for at in (noted, self._hub.created_at) if at is not None]
        return max(known, default=None)

    def check_hub(self, start: Offsets, end: Offsets, noted: datetime | None) -> None:
        """Check that the present hub has the events of a planned batch, from *start* to *end*.

        A query that is started again reads its last batch without planning it, and a batch of
        ``all_available`` was planned without its start.

        Raises:
            SourceRejectedError: the hub was deleted and created again.
            SourceUnavailableError: the hub has been unreachable for ``operationTimeout``.
        """
        if not self._known:
            self._remember(self._hub.partition_ends())
        self._refuse_former_hub(end, noted)
        if beyond := beyond_end(start, self._known):
            raise SourceRejectedError(recreated_message(beyond))

    def all_available(self) -> dict[str, int]:
        """Return the end of a batch that has all events that the hub has now.

        Raises:
            SourceUnavailableError: the hub has been unreachable for ``operationTimeout``.
        """
        self._remember(self._hub.partition_ends())
        self._planned_at = time.monotonic()
        return {partition_id: span.next for partition_id, span in self._known.items()}

    def latest(
        self, start: Offsets, events_max: int | None, hub_created_at: datetime | None = None
    ) -> dict[str, int]:
        """Return the end of a batch that begins at ``start``; ``start`` itself without new events.

        Args:
            start: The positions.
            events_max: The most events.
            hub_created_at: When the hub of ``start`` was created, if that is known.

        Raises:
            EventsLostError: retention deleted events after ``start``, and ``failOnDataLoss`` is
                true.
            SourceRejectedError: the hub refuses, or was deleted and created again.
            SourceUnavailableError: the hub has been unreachable for ``operationTimeout``.
        """
        self._planned = start
        spans = self._spans_for(start)
        self._refuse_former_hub(start, hub_created_at)
        if beyond := beyond_end(start, spans):
            raise SourceRejectedError(recreated_message(beyond))
        lost = [] if self._options.is_compacted else expired(start, spans)
        if lost and self._options.fails_on_data_loss:
            raise EventsLostError(lost_message(lost))
        for missing in lost:
            if (
                missing.partition_id,
                missing.end,
            ) not in self._logged:  # not at a repetition
                self._logged.add((missing.partition_id, missing.end))
                self._log.warning(
                    "events_expired", partition_id=missing.partition_id, missing_count=len(missing)
                )
        if not self._is_due(start, spans):
            return dict(start)
        is_aligned = self._options.alignment is Alignment.ENQUEUED_TIME
        while events_max is not None and is_aligned:
            try:
                spans, events_max = self._aligner.cut(start, spans, events_max), None
            except SourceUnavailableError as error:
                self._lookup_outage.wait_out(error)
                if not self._is_final:  # Then no batch would be the end of the query.
                    return dict(start)
            else:
                _end(self._lookup_outage)
        self._planned_at = time.monotonic()
        self._planned = advance(start, spans, events_max)
        return dict(self._planned)

    def fix_end(self) -> None:
        """Fix the end: events that are published from now on are not planned."""
        self._remember(self._hub.partition_ends())
        self._is_final = True

    def report(self) -> tuple[dict[str, int], Lag] | None:
        """Return where the partitions end, and how far the last planned batch is behind.

        ``None`` before the first batch is planned. During an outage it does not wait for the hub.
        """
        if self._planned is None or not self._known:
            return None
        is_old = time.monotonic() - self._known_at > REPORT_AGE_MAX_S
        if is_old and not self._is_final and not self._ends_outage.failure_count:
            with suppress(SourceUnavailableError):  # The next plan asks again, and logs an outage.
                self._remember(self._hub.partition_ends_now())
        ends = {p: span.next for p, span in self._known.items()}
        return ends, self._lag.lag(self._planned, self._known)

    def events_max(self) -> int:
        """Return the most events of a batch."""
        if self._options.events_per_trigger_max is not None:
            return self._options.events_per_trigger_max
        if not self._known:
            self._remember(self._hub.partition_ends())
        return EVENTS_PER_PARTITION * len(self._known)

    def _spans_for(self, start: Offsets) -> Spans:
        if self._is_final:
            return self._known
        interval_s = poll_interval_s(
            self._options.poll_interval.total_seconds(), len(self._known), REQUESTS_PER_SECOND
        )
        fresh_for_s = self._known_at + interval_s - time.monotonic()
        if fresh_for_s > 0:
            if self._is_due(start, self._known):
                return self._known
            time.sleep(fresh_for_s)
        try:
            self._remember(self._hub.partition_ends_now())
        except SourceUnavailableError as error:
            self._ends_outage.wait_out(error)
        return self._known

    def _refuse_former_hub(self, positions: Offsets, noted: datetime | None) -> None:
        created_at = self._hub.created_at
        if former := of_former_hub(positions, noted, created_at):
            raise SourceRejectedError(younger_message(former, created_at))

    def _is_due(self, start: Offsets, spans: Spans) -> bool:
        """Whether the next batch need not wait for more events."""
        return is_due(
            waiting_count(start, spans),
            least=1 if self._is_final else self._options.events_per_trigger_min,
            waited_s=time.monotonic() - self._planned_at,
            delay_max_s=self._options.trigger_delay_max.total_seconds(),
        )

    def _remember(self, ends: PartitionEnds) -> None:
        self._known = {p: span_of(properties) for p, properties in ends.items()}
        self._known_at = time.monotonic()
        _end(self._ends_outage)


def _end(outage: Outage) -> None:
    outage.end(failure_count=outage.failure_count)

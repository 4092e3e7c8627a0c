"""Where a micro-batch ends: the driver's part of the streaming source, without Spark's types.

Rule 1: while the hub does not answer, nothing is new; only an outage longer than
``operationTimeout`` fails the query.
Rule 2: the hub is asked no more often than ``pollInterval`` says and the service allows, and not
at all while there is more to read than a batch takes.
"""

import time
from collections.abc import Mapping
from typing import Final

from eventproc.core.policy import backoff_s
from eventproc.errors import SourceRejectedError, SourceUnavailableError
from eventproc.logs import get_logger
from spark_integration.errors import EventsLostError
from spark_integration.hub import BACKOFF, Hold, Hub, span_of
from spark_integration.options import EVENTS_PER_PARTITION, SourceOptions
from spark_integration.planning import (
    Offsets,
    PartitionSpan,
    advance,
    beyond_end,
    expired,
    poll_interval_s,
)
from spark_integration.reading import lost_message, recreated_message

QUESTIONS_PER_SECOND: Final = 25
"""Half of what the service answers: 50 questions for a partition's ends each second, to all who
ask the same namespace."""

PAUSE_MAX_S: Final = 1.0
"""A call from Spark waits no longer during an outage, so that a query can be stopped."""

Spans = Mapping[str, PartitionSpan]


class StreamPlanner:
    """Plans the batches of one query. One caller at a time."""

    def __init__(self, options: SourceOptions, hub: Hub | None = None) -> None:
        self._options = options
        self._hub = hub or Hub(options)
        self._known: Spans = {}
        self._known_at = float("-inf")
        self._is_final = False
        self._outage_began_at: float | None = None
        self._failure_count = 0
        self._told: set[tuple[str, int]] = set()
        self._log = get_logger("eventproc.spark", consumer_group=options.consumer_group)

    @property
    def hub_name(self) -> str:
        """What the query's offsets belong to."""
        return self._hub.name

    def first(self) -> dict[str, int]:
        """Where a query begins that has never run."""
        self._hub.check()
        hold = self._hub.hold()
        self._keep(hold)  # also where the end is fixed: "latest" may lie behind it by now
        return self._hub.find(self._options.starting, hold)

    def latest(self, start: Offsets, events_max: int | None) -> dict[str, int]:
        """Where a batch ends that begins at ``start``; ``start`` itself if there is nothing new.

        Raises:
            EventsLostError: retention passed ``start``, and ``failOnDataLoss`` is on.
            SourceRejectedError: the hub refuses, or is not the one that was read so far.
            SourceUnavailableError: the hub has been out of reach for ``operationTimeout``.
        """
        spans = self._spans_for(start)
        if behind := beyond_end(start, spans):
            raise SourceRejectedError(recreated_message(behind))
        lost = expired(start, spans)
        if lost and self._options.fails_on_data_loss:
            raise EventsLostError(lost_message(lost))
        for gone in lost:
            if (gone.partition_id, gone.end) not in self._told:  # the batch may be planned again
                self._told.add((gone.partition_id, gone.end))
                self._log.warning(
                    "events_expired", partition_id=gone.partition_id, missing_count=len(gone)
                )
        return advance(start, spans, events_max)

    def fix_end(self) -> None:
        """From now on, behave as if nothing new came: the query is to end where the hub does."""
        self._keep(self._hub.hold())
        self._is_final = True

    def end(self) -> dict[str, int] | None:
        """Where the partitions ended when the hub was last asked."""
        return {p: span.next for p, span in self._known.items()} or None

    def events_max(self) -> int:
        """How many events a batch has at most."""
        if self._options.events_per_trigger_max is not None:
            return self._options.events_per_trigger_max
        if not self._known:
            self._keep(self._hub.hold())
        return EVENTS_PER_PARTITION * len(self._known)

    def _spans_for(self, start: Offsets) -> Spans:
        if self._is_final:
            return self._known
        interval_s = poll_interval_s(
            self._options.poll_interval.total_seconds(), len(self._known), QUESTIONS_PER_SECOND
        )
        fresh_for_s = self._known_at + interval_s - time.monotonic()
        if fresh_for_s > 0:
            if advance(start, self._known) != dict(start):
                return self._known
            time.sleep(fresh_for_s)
        try:
            self._keep(self._hub.hold_now())
        except SourceUnavailableError as error:
            self._bear(error)
        return self._known

    def _keep(self, hold: Hold) -> None:
        self._known = {p: span_of(properties) for p, properties in hold.items()}
        self._known_at = time.monotonic()
        if self._outage_began_at is not None:
            self._log.info("hub_recovered", failure_count=self._failure_count)
            self._outage_began_at, self._failure_count = None, 0

    def _bear(self, error: SourceUnavailableError) -> None:
        """Wait a little; give up if the outage has lasted too long."""
        now = time.monotonic()
        self._failure_count += 1
        if self._outage_began_at is None:
            self._outage_began_at = now
            self._log.warning("hub_unavailable", error=str(error))
        if now - self._outage_began_at > self._options.patience.total_seconds():
            raise error
        time.sleep(
            min(PAUSE_MAX_S, backoff_s(self._failure_count, first=BACKOFF.first, most=BACKOFF.most))
        )

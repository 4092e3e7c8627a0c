"""Finds events that kill the process, by a delivery count stored with the checkpoint.

``core.deliveries`` has the rules, and this module carries them out. The count is stored before the
events that it covers are given to the handler.
"""

from collections.abc import Awaitable, Callable, Sequence
from math import inf

from eventproc.core.deliveries import (
    AMONG_MANY,
    NO_MARK,
    Isolation,
    deliveries_of,
    first_isolation,
    isolation_after,
    isolation_for,
    mark_at_rest,
)
from eventproc.models import CloseReason, LastEnqueued, ReceivedEvent
from eventproc.partition.checkpointer import Checkpointer
from eventproc.partition.scope import PartitionScope

Deliver = Callable[[Sequence[ReceivedEvent]], Awaitable[None]]
GiveUp = Callable[[ReceivedEvent, int], Awaitable[None]]


class CrashGuard:
    """Passes received events to the handler; stores the delivery count first where needed."""

    def __init__(
        self,
        checkpointer: Checkpointer,
        *,
        scope: PartitionScope,
        last_enqueued: Callable[[], LastEnqueued | None],
        until_settled: Callable[[], Awaitable[None]],
        unsettled_max: int | None,
        was_delivered: Callable[[ReceivedEvent], bool],
        deliveries_max: int | None,
    ) -> None:
        """Create the guard of one pump; nothing is stored before ``deliver``.

        Args:
            checkpointer: Stores the delivery count with the progress.
            scope: Ends the waits for the store, and logs that events are delivered one at a time.
            last_enqueued: Returns the newest event of the partition, as last reported.
            until_settled: Returns when the source's service knows the position that is stored.
                Before that, the next process might receive an earlier event first, and count the
                deliveries of that one.
            unsettled_max: If the service keeps the position: how many events, at most, it delivers
                again when a process dies.
            was_delivered: Whether a process may have received an event before.
            deliveries_max: An event is given up after this many deliveries; ``None``: not counted.
        """
        self._checkpointer = checkpointer
        self._progress = checkpointer.progress
        self._stop_scope = scope.stop
        self._log = scope.log
        self._last_enqueued = last_enqueued
        self._until_settled = until_settled
        self._unsettled_max = unsettled_max
        self._was_delivered = was_delivered
        self._deliveries_max = deliveries_max
        self.is_forced = False
        """Whether to deliver the first event once more, although its count is at the limit."""

        self._isolation: Isolation | None = None
        """``None`` until the first event was delivered or given up."""

        self._covered_count: float = 0
        """How many more events the stored delivery count covers."""

        self.is_done = deliveries_max is None
        """Whether the remaining events may be delivered without this guard."""

    async def deliver(
        self, events: Sequence[ReceivedEvent], deliver: Deliver, give_up: GiveUp
    ) -> None:
        """Deliver events through *deliver*, after storing the delivery count that covers them.

        The first event goes to *give_up* if its count has reached the limit.
        """
        if self._isolation is None:
            found, isolation = self._begin(events)
            deliveries = deliveries_of(found)
            if deliveries >= (self._deliveries_max or inf) and not self.is_forced:
                await give_up(events[0], deliveries)  # Its count stays stored if that fails.
                isolation, events = isolation_after(isolation, 1), events[1:]
            self._isolation = isolation
        while events:
            part = events[: await self._cover(events[0].sequence_number, len(events))]
            await deliver(part)
            self._isolation = isolation_after(self._isolation, len(part))
            events = events[len(part) :]

    def set_last_count(self, reason: CloseReason) -> None:
        """Set the delivery count for the last checkpoint, as the partition closes."""
        if self._isolation is None or reason is CloseReason.STALLED:
            return
        reached = self._progress.sequence_number
        isolation = (
            self._isolation if reached is None else isolation_for(self._isolation, reached + 1)
        )
        self._progress.count_delivery(mark_at_rest(isolation))

    def _begin(self, events: Sequence[ReceivedEvent]) -> tuple[int, Isolation]:
        """Return the delivery count of the first event, and the isolation for it."""
        found, newest = self._progress.delivery_count, self._last_enqueued()
        first_new = next((e for e in events if not self._was_delivered(e)), None) if found else None
        if first_new is events[0]:
            found = (
                NO_MARK  # The events of the dead process do not exist any more: purged, perhaps.
            )
        if found:
            self._log.warning("poison_isolation_started", delivery_count=deliveries_of(found))
        # Events that arrive together may have been delivered together before.
        last = inf if newest is None else max(newest.sequence_number, events[-1].sequence_number)
        if self._unsettled_max is not None:
            last = events[0].sequence_number - 1 + self._unsettled_max
        if first_new is not None:  # No process has received this one, or a later one.
            last = min(last, first_new.sequence_number - 1)
        return found, first_isolation(found, last)

    async def _cover(self, sequence_number: int, count: int) -> int:
        """Store the delivery count if needed; return how many of *count* events it covers."""
        assert self._isolation is not None, "set by the first call of deliver"
        isolation = isolation_for(self._isolation, sequence_number)
        if isolation.mark != self._isolation.mark or self._covered_count <= 0:
            self._progress.count_delivery(isolation.mark)
            async with self._stop_scope.waiting():
                await self._checkpointer.flush()
            if isolation.mark != AMONG_MANY:
                await self._until_settled()
            self._covered_count = isolation.events_max
            self.is_done = isolation.mark == AMONG_MANY
        self._isolation = isolation
        covered = int(min(self._covered_count, count))
        self._covered_count -= covered
        return covered

"""Finds events that kill the process, by a delivery count stored with the checkpoint.

``core.deliveries`` has the rules; this module carries them out: the count is stored before the
events that it covers are given to the handler. Without events nothing is stored.
"""

from collections.abc import Awaitable, Callable, Sequence
from math import inf

from eventproc.core.deliveries import (
    AMONG_MANY,
    Care,
    care_after,
    care_at_first,
    care_for,
    deliveries_of,
    mark_at_rest,
)
from eventproc.logs import Logger
from eventproc.models import CloseReason, ReceivedEvent
from eventproc.partition.checkpointer import Checkpointer
from eventproc.partition.context import LiveContext
from eventproc.partition.stop_scope import StopScope

Hand = Callable[[Sequence[ReceivedEvent]], Awaitable[None]]
GiveUp = Callable[[ReceivedEvent, int], Awaitable[None]]


class CrashGuard:
    """Passes received events to the handler, and stores delivery counts before, while needed."""

    def __init__(
        self,
        context: LiveContext,
        *,
        checkpointer: Checkpointer,
        stop_scope: StopScope,
        deliveries_max: int | None,
        is_forced: bool,
        log: Logger,
    ) -> None:
        """Create the guard of one pump; nothing is stored before ``hand``.

        Args:
            context: Holds the position, and the delivery count that was restored with it.
            checkpointer: Stores the delivery count.
            stop_scope: Cuts the waits for the store.
            deliveries_max: An event is given up after this many deliveries; ``None``: not counted.
            is_forced: Deliver the first event once more, although its count has reached the limit.
            log: Logs that events are delivered one at a time.
        """
        self._context = context
        self._checkpointer = checkpointer
        self._stop_scope = stop_scope
        self._deliveries_max = deliveries_max
        self._is_forced = is_forced
        self._log = log
        self._care: Care | None = None
        """``None`` before the first event."""

        self._covered_count: float = 0
        """How many more events the stored delivery count covers."""

        self._is_giving_up = False
        self.is_done = deliveries_max is None
        """Whether the remaining events may be delivered without this guard."""

    async def hand(self, events: Sequence[ReceivedEvent], hand: Hand, give_up: GiveUp) -> None:
        """Deliver events through *hand*, after storing the delivery count that covers them.

        The first event goes to *give_up* if its count has reached the limit.
        """
        if self._care is None:
            care = self._begin(events)
            deliveries = deliveries_of(self._context.delivery_count)
            if deliveries >= (self._deliveries_max or inf) and not self._is_forced:
                self._is_giving_up = True  # Its count stays stored unless that succeeds.
                await give_up(events[0], deliveries)
                self._is_giving_up = False
                care, events = care_after(care, 1), events[1:]
            self._care = care
        while events:
            part = events[: await self._cover(events[0].sequence_number, len(events))]
            await hand(part)
            self._care = care_after(self._care, len(part))
            events = events[len(part) :]

    def settle(self, reason: CloseReason) -> None:
        """Set the delivery count for the last checkpoint, as the partition closes."""
        if self._care is None or self._is_giving_up or reason is CloseReason.STALLED:
            return
        reached = self._context.reached
        care = self._care if reached is None else care_for(self._care, reached + 1)
        self._context.count_delivery(mark_at_rest(care))

    def _begin(self, events: Sequence[ReceivedEvent]) -> Care:
        found, newest = self._context.delivery_count, self._context.newest_enqueued
        if found:
            self._log.warning("poison_isolation_started", delivery_count=deliveries_of(found))
        # Events that arrive together may have been delivered together before.
        last = inf if newest is None else max(newest, events[-1].sequence_number)
        return care_at_first(found, last)

    async def _cover(self, sequence_number: int, count: int) -> int:
        """Store the delivery count if needed; return how many of *count* events it covers."""
        assert self._care is not None, "set by the first call of hand"
        care = care_for(self._care, sequence_number)
        if care.mark != self._care.mark or self._covered_count <= 0:
            self._context.count_delivery(care.mark)
            await self._store()
            self._covered_count = care.events_max
            self.is_done = care.mark == AMONG_MANY
        self._care = care
        covered = int(min(self._covered_count, count))
        self._covered_count -= covered
        return covered

    async def _store(self) -> None:
        if self._context.has_position:
            self._checkpointer.note(self._context.progress(), 0)
            async with self._stop_scope.waiting():
                await self._checkpointer.flush()

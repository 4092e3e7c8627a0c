"""Finds events that kill the process, by an isolation stored with the checkpoint.

``_core/delivery/failure.py`` has the rules, and this module carries them out. The isolation is
stored before the events that it covers are given to the handler.
"""

from collections.abc import Sequence
from math import inf

from eventproc._core.delivery.failure import (
    PoisonSearch,
    deliveries_of,
    first_search,
    isolation_at_rest,
    search_after,
    search_for,
)
from eventproc._delivery.checkpointer import Checkpointer
from eventproc._delivery.lanes import Lanes
from eventproc._delivery.scope import PartitionScope
from eventproc._delivery.steady_link import SteadyLink
from eventproc.models import IN_BATCH, NOT_BEGUN, CloseReason, Isolation, ReceivedEvent


class CrashGuard:
    """Passes received events to the handler; stores the isolation first where needed."""

    def __init__(
        self,
        link: SteadyLink,
        lanes: Lanes,
        checkpointer: Checkpointer,
        *,
        scope: PartitionScope,
        deliveries_max: int | None,
        is_forced: bool = False,
    ) -> None:
        """Create the guard of one pump; nothing is stored before ``deliver``.

        Args:
            link: Knows which events a process may have received before, and waits until the
                source's service knows the position that is stored. Before that, the next process
                might receive an earlier event first, and count the deliveries of that one.
            lanes: Deliver the events, or give one up.
            checkpointer: Stores the isolation with the progress.
            scope: Ends the waits for the store, and logs that events are delivered one at a time.
            deliveries_max: An event is given up after this many deliveries; ``None``: not counted.
            is_forced: Whether to deliver the first event once more, although it is at the limit.
        """
        self._link = link
        self._lanes = lanes
        self._checkpointer = checkpointer
        self._progress = checkpointer.progress
        self._stop_scope = scope.stop
        self._log = scope.log
        self._deliveries_max = deliveries_max
        self._is_forced = is_forced
        self._search: PoisonSearch | None = None
        """``None`` until the first event was delivered or given up."""

        self._covered_count: float = 0
        """How many more events the stored isolation covers."""

        self.is_over = deliveries_max is None
        """Whether the remaining events may be delivered without this guard."""

    async def deliver(self, events: Sequence[ReceivedEvent]) -> None:
        """Deliver events, after storing the isolation that covers them; return when all are done.

        The first event is given up if its deliveries have reached the limit.
        """
        search = self._search
        if search is None:
            found, search = self._begin(events)
            deliveries = deliveries_of(found)
            if deliveries >= (self._deliveries_max or inf) and not self._is_forced:
                # Its isolation stays stored if that fails.
                await self._lanes.give_up(events[0], deliveries)
                search, events = search_after(search, 1), events[1:]
            self._search = search
        while events:
            self._search = await self._cover(search, events[0].sequence_number)
            covered = int(min(self._covered_count, len(events)))
            self._covered_count -= covered
            await self._lanes.take_until_done(events[:covered])
            self._search = search = search_after(self._search, covered)
            events = events[covered:]

    def set_last_isolation(self, reason: CloseReason) -> None:
        """Set the isolation for the last checkpoint, as the partition closes."""
        if self._search is None or reason is CloseReason.STALLED:
            return
        reached = self._progress.sequence_number
        search = self._search if reached is None else search_for(self._search, reached + 1)
        self._progress.set_isolation(isolation_at_rest(search))

    def _begin(self, events: Sequence[ReceivedEvent]) -> tuple[Isolation, PoisonSearch]:
        """Return the isolation of the first event, and the search for it."""
        found, last = self._progress.isolation, self._link.delivered_through(events)
        if last < events[0].sequence_number:  # The dead process's events are purged.
            found = NOT_BEGUN
        if found != NOT_BEGUN:
            self._log.warning("poison_isolation_started", delivery_count=deliveries_of(found))
        return found, first_search(found, last)

    async def _cover(self, former: PoisonSearch, sequence_number: int) -> PoisonSearch:
        """Store the isolation of the event if needed; return how to deliver it."""
        search = search_for(former, sequence_number)
        if search.isolation != former.isolation or self._covered_count <= 0:
            self._progress.set_isolation(search.isolation)
            with self._stop_scope.waiting():
                await self._checkpointer.flush()
            if search.isolation != IN_BATCH:
                await self._link.until_settled()
            self._covered_count = search.events_max
            self.is_over = search.isolation == IN_BATCH
        return search

"""Noticing an event that kills the process, although nobody is left to tell.

Rule 1: how often what follows the position was handed over, and nothing was heard of it, stands in
the checkpoint. It is written before the hand-over, and becomes 0 as soon as the position moves on
or a pump closes in good order. A partition without events counts nothing.
Rule 2: from the second time on, one event is handed over at a time, with a checkpoint before each.
So the culprit is the very next event when the process dies again.
Rule 3: only such single deliveries can make an event the culprit: the first one had a whole batch.
Rule 4: after so many single ones a checkpoint is written before each batch, for as far as a process
may have come without one. So who dies there leaves the culprit within the next batch.
"""

from collections.abc import Awaitable, Callable, Sequence
from math import inf

from eventproc.checkpointer import Checkpointer
from eventproc.context import LiveContext
from eventproc.ending import Ending
from eventproc.logs import Logger
from eventproc.models import ReceivedEvent

Hand = Callable[[Sequence[ReceivedEvent]], Awaitable[None]]
GiveUp = Callable[[ReceivedEvent, int], Awaitable[None]]


class CrashGuard:
    """Stands between what was received and the handler, for as long as it has to."""

    def __init__(
        self,
        context: LiveContext,
        *,
        checkpointer: Checkpointer,
        ending: Ending,
        deliveries_max: int | None,
        careful_count: int,
        watchful_count: float,
        is_forced: bool,
        log: Logger,
    ) -> None:
        """Put it there.

        Args:
            context: Knows the position, and what was restored with it.
            checkpointer: Stores the count.
            ending: Cuts the waits for that.
            deliveries_max: So many deliveries, and an event is given up; ``None``: nothing counts.
            careful_count: How many events to hand over singly.
            watchful_count: How many of those after them to hand over with checkpoints in between.
            is_forced: Somebody said to try again what was given up before.
            log: Where to tell of it.
        """
        self._context = context
        self._checkpointer = checkpointer
        self._ending = ending
        self._deliveries_max = deliveries_max
        self._careful_count = careful_count
        self._watchful_left = watchful_count
        self._is_forced = is_forced
        self._log = log
        self._careful_left: int | None = None
        """``None``: nothing was handed over yet."""

        self.is_done = deliveries_max is None
        """Whether it need not stand there any more."""

    @property
    def has_begun(self) -> bool:
        """Whether anything was handed over."""
        return self._careful_left is not None

    async def hand(self, events: Sequence[ReceivedEvent], hand: Hand, give_up: GiveUp) -> None:
        """Hand over events with the care that is due."""
        if self._careful_left is None:
            count = self._context.delivery_count
            self._careful_left = self._careful_count if count else 0
            if not count:
                self._watchful_left = 0
            else:
                self._log.warning("delivery_careful", delivery_count=count)
            if count >= (self._deliveries_max or inf) and not self._is_forced:
                await give_up(events[0], count)
                events = events[1:]
        if self._careful_left <= 0:
            await self._count(max(1, self._context.delivery_count))
            self._watchful_left -= len(events)
            self.is_done = self._watchful_left <= 0
            await hand(events)
            return
        for event in events:
            await self._count(self._context.delivery_count + 1)
            await hand([event])
            self._careful_left -= 1
        await self._store()

    async def _count(self, delivery_count: int) -> None:
        """Store that what comes next is handed over, for the so manieth time."""
        if self._context.is_anywhere:
            self._context.count_delivery(delivery_count)
            await self._store()

    async def _store(self) -> None:
        if self._context.is_anywhere:
            self._checkpointer.note(self._context.progress(), 0)
            async with self._ending.waiting():
                await self._checkpointer.flush()

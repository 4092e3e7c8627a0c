"""Noticing an event that kills the process, although nobody is left to tell.

Rule 1: how often what follows the position was handed over, and nothing was heard of it, stands in
the checkpoint. It is written before the hand-over, and becomes 0 as soon as the position moves on
or a pump closes in good order. A partition without events counts nothing.
Rule 2: from the second time on, one event is handed over at a time, with a checkpoint before each.
So the culprit is the very next event when the process dies again.
Rule 3: only such single deliveries can make an event the culprit: the first one had a whole batch.
"""

from collections.abc import Awaitable, Callable, Sequence

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
            is_forced: Somebody said to try again what was given up before.
            log: Where to tell of it.
        """
        self._context = context
        self._checkpointer = checkpointer
        self._ending = ending
        self._deliveries_max = deliveries_max
        self._careful_count = careful_count
        self._is_forced = is_forced
        self._log = log
        self._careful_left: int | None = None
        """``None``: nothing was handed over yet."""

        self.is_done = deliveries_max is None
        """Whether it need not stand there any more."""

    async def hand(self, events: Sequence[ReceivedEvent], hand: Hand, give_up: GiveUp) -> None:
        """Hand over events with the care that is due."""
        if self._careful_left is None:
            count = self._context.delivery_count
            if self._deliveries_max is not None and count >= self._deliveries_max:
                if not self._is_forced:
                    await give_up(events[0], count)
                    events = events[1:]
                self._careful_left = self._careful_count
            elif count:
                self._careful_left = self._careful_count
            else:
                self._careful_left = 0
            if self._careful_left:
                self._log.warning("delivery_careful", delivery_count=count)
        if self._careful_left <= 0:
            self.is_done = True
            await self._count()
            await hand(events)
            return
        for event in events:
            await self._count()
            await hand([event])
            self._careful_left -= 1
        await self._store()

    async def _count(self) -> None:
        """Store that what comes next is handed over."""
        if self._context.is_anywhere:
            self._context.count_delivery(self._context.delivery_count + 1)
            await self._store()

    async def _store(self) -> None:
        if self._context.is_anywhere:
            self._checkpointer.note(self._context.progress(), 0)
            async with self._ending.waiting():
                await self._checkpointer.flush()

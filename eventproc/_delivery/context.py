"""What the handler sees of one partition that a pump serves."""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from copy import copy
from threading import get_ident
from typing import Any

from eventproc._base.tasks import to_the_end
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc._core.delivery.window import NUMBER_OF
from eventproc._delivery.call_context import CallContext, as_event
from eventproc._delivery.checkpointer import Checkpointer
from eventproc._delivery.commits import Commits
from eventproc._delivery.flow_control import PauseSwitch
from eventproc._delivery.scope import PartitionScope
from eventproc.errors import OwnershipLostError, TransactionsRefusedError
from eventproc.models import LastEnqueued, ReceivedEvent


class LiveContext(CallContext):
    """The context of a partition that a pump serves; with key lanes, one for each lane too."""

    def __init__(
        self,
        scope: PartitionScope,
        *,
        checkpointer: Checkpointer,
        pause_switch: PauseSwitch,
        last_enqueued: Callable[[], LastEnqueued | None],
        commits: Commits | None = None,
    ) -> None:
        super().__init__(scope.identity, checkpointer.progress, on_done=checkpointer.note)
        self._stop_scope = scope.stop
        self._last_progress = scope.progress
        self._checkpointer = checkpointer
        self._pause_switch = pause_switch
        self._last_enqueued = last_enqueued
        self._thread_id = get_ident()
        self._is_count_due = False
        self._commits = commits
        self._is_in_transaction = False
        self._committing: asyncio.Future[None] | None = None

    def of_lane(self, on_done: Callable[[int], object]) -> "LiveContext":
        """Return a context for one key lane: ``done`` and ``checkpoint`` concern its own call."""
        context = copy(self)
        context._on_done = on_done  # noqa: SLF001 - of the same class
        context.variables = copy_context()
        return context

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers."""
        stored = self._checkpointer.stored
        return None if stored is None else as_event(stored.sequence_number)

    @property
    def lag(self) -> int | None:
        """Events in the hub above the position."""
        newest, handled = self._last_enqueued(), self._progress.sequence_number
        if newest is None or handled is None:
            return None
        if handled == BEFORE_FIRST_SEQUENCE_NUMBER and newest.sequence_number > handled:
            return None  # Retention may have removed any number of events at the beginning.
        return max(0, newest.sequence_number - handled)

    @property
    def lag_seconds(self) -> float | None:
        """By how much the event at the position is older than the newest in the hub."""
        if self.lag == 0:
            return 0.0
        newest, handled_time = self._last_enqueued(), self._progress.enqueued_time
        if newest is None or newest.enqueued_time is None or handled_time is None:
            return None
        return max(0.0, (newest.enqueued_time - handled_time).total_seconds())

    @property
    def is_owned(self) -> bool:
        """Whether the lease may be trusted now."""
        return self._stop_scope.is_trusted

    @property
    def is_ending(self) -> bool:
        """Whether the pump is stopping."""
        return self._stop_scope.reason is not None

    @asynccontextmanager
    async def open_transaction(
        self,
        event: ReceivedEvent | None,
        *,
        is_cancelled: Callable[[], bool] | None = None,
    ) -> AsyncIterator[Any]:
        """Open a transaction; at the end of the block commit it with the events of the call."""
        self._refuse_in_transaction("transaction")
        if self._commits is None:
            raise TransactionsRefusedError(
                "transaction() needs `uses_transactions = True` in the class of the handler, so "
                "that the processor checks at its start whether the store has transactions"
            )
        if self._stop_scope.is_lost:
            raise OwnershipLostError(self.partition_id)
        events, state = self._part(event), self._progress.state
        self._is_in_transaction, self._committing = True, None
        try:
            async with self._commits.begin(is_blocking=is_cancelled is not None) as transaction:
                yield transaction.db
                async with self._commits.turn():
                    _raise_if(is_cancelled)
                    committing = self._commits.commit(transaction, events, self._note_committed)
                    self._committing = asyncio.ensure_future(committing)
                    await to_the_end(self._committing)
        except BaseException:
            # The block's rows are rolled back, so its change of the state is undone, too.
            is_over = is_cancelled is not None and is_cancelled()
            if not is_over and not _has_succeeded(self._committing):
                self._progress.state = state
            raise
        finally:
            self._is_in_transaction = False

    def _part(self, event: ReceivedEvent | None) -> Sequence[ReceivedEvent]:
        """Return the events of the call that a transaction completes."""
        events = self._call_events
        if event is None:
            return events if self._current is None else (self._current,)
        at = bisect_left(events, event.sequence_number, key=NUMBER_OF)
        if at == len(events) or events[at].sequence_number != event.sequence_number:
            raise ValueError(
                f"event {event.sequence_number} is not one of this call of partition "
                f"{self.partition_id!r}: transaction() completes events of the call it is in"
            )
        return events[: at + 1]

    def _note_committed(self, done_count: int) -> None:
        self._note_busy()
        self._on_done(done_count)

    async def commit_ended(self) -> None:
        """Return when no commit of the call is under way any more."""
        if self._committing is not None:
            await asyncio.wait([self._committing])

    def _refuse_in_transaction(self, what: str) -> None:
        if self._is_in_transaction:
            raise TransactionsRefusedError(
                f"{what}() was called in the block of transaction(): the end of the block stores "
                "the position with the rows, so leave it out"
            )

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store progress up to an event, or up to what was handled before this call."""
        self._refuse_in_transaction("checkpoint")
        if self._stop_scope.is_lost:
            raise OwnershipLostError(self.partition_id)
        if event is not None:
            self.done(event)
        await self._checkpointer.flush(is_of_call=self.busy_since_s is not None)

    def done(self, event: ReceivedEvent) -> None:
        """Note that events are handled: all up to this one, or with key lanes those of its call."""
        if self._is_in_transaction:
            self._refuse_in_transaction("done")
        if self._progress.has_state:
            super().done(event)
            return
        events = self._up_to(event)
        if events and get_ident() == self._thread_id:
            self.complete(events)
            return
        self._note_busy()
        if events:  # The loop runs it before it sees the call's end, which comes in the same way.
            self._loop.call_soon_threadsafe(self.complete, events)

    def pause(self) -> None:
        """Receive nothing more until ``resume``; may be called from a handler thread."""
        self._on_loop(self._pause_switch.pause)

    def resume(self) -> None:
        """Receive again; may be called from a handler thread."""
        self._on_loop(self._pause_switch.resume)

    def _on_loop(self, function: Callable[[], None]) -> None:
        if get_ident() == self._thread_id:
            function()
        else:
            self._loop.call_soon_threadsafe(function)

    def complete(self, *parts: Sequence[ReceivedEvent]) -> None:
        """Note that these events are handled or given up."""
        if any(parts):
            self._last_progress.at_s = now_s = self._clock()
            if self.busy_since_s is not None:
                self.busy_since_s = now_s
        self._on_done(self._progress.done(*parts))

    def note_state(self) -> None:
        """Have a changed state stored when that is due, although the position is the same."""
        self._on_done(1)

    def _count_passed_soon(self) -> None:
        if get_ident() == self._thread_id:
            self._count_passed()
        elif not self._is_count_due:
            self._is_count_due = True
            self._loop.call_soon_threadsafe(self._count_passed)

    def _count_passed(self) -> None:
        self._is_count_due = False
        self._last_progress.at_s = self._loop.time()
        self._on_done(self._progress.count_passed())

    def _up_to(self, event: ReceivedEvent) -> Sequence[ReceivedEvent]:
        events = self._events
        if len(events) == 1 and events[0] is event:
            self._events = ()
            return events
        at = bisect_left(events, event.sequence_number, key=NUMBER_OF)
        if at == len(events) or events[at].sequence_number != event.sequence_number:
            # It is done already, or of an earlier call: the events below it have another key.
            return ()
        self._events = events[at + 1 :]
        return events[: at + 1]


def _has_succeeded(committing: asyncio.Future[None] | None) -> bool:
    return (
        committing is not None
        and committing.done()
        and not committing.cancelled()
        and committing.exception() is None
    )


def _raise_if(is_cancelled: Callable[[], bool] | None) -> None:
    if is_cancelled is not None and is_cancelled():
        raise asyncio.CancelledError

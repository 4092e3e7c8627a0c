"""What the handler sees of one partition. The progress itself is in ``core.progress``."""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from threading import get_ident
from typing import Any

from eventproc.concurrency.tasks import to_the_end
from eventproc.core.checkpoint_rules import BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc.core.progress import PartitionProgress
from eventproc.core.window import NUMBER_OF
from eventproc.errors import OwnershipLostError, StateRefusedError, TransactionsRefusedError
from eventproc.handler import PartitionContext
from eventproc.models import (
    ConsumerGroup,
    LastEnqueued,
    ReceivedEvent,
    SequenceRange,
    check_state,
)
from eventproc.partition.checkpointer import Checkpointer
from eventproc.partition.flow_control import PauseSwitch
from eventproc.partition.scope import PartitionIdentity, PartitionScope
from eventproc.partition.transactions.commits import Commits


class CallContext(PartitionContext):
    """The context that a handler call receives; ``HandlerCalls`` reports start and end to it."""

    def __init__(
        self,
        identity: PartitionIdentity,
        progress: PartitionProgress,
        *,
        on_done: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Create the context; *on_done* is called after events were noted as done.

        Its argument is how many more events the next checkpoint covers.
        """
        self._identity = identity
        self._progress = progress
        self._on_done = on_done
        self._loop = asyncio.get_running_loop()
        self._events: Sequence[ReceivedEvent] = ()
        """Those of the last call that had any; with key lanes, only the ones after ``done``."""

        self._call: Sequence[ReceivedEvent] = ()
        """The events of the call under way."""

        self._current: ReceivedEvent | None = None
        """The event that ``process_event`` is called with."""

        self.busy_since_s: float | None = None
        """Loop time of the start of the call under way, or of its last ``done``; ``None``: no call.
        """

    @property
    def partition_id(self) -> str:
        """The partition's id."""
        return self._identity.partition_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The consumer group that reads the partition."""
        return self._identity.group

    @property
    def owner_id(self) -> str:
        """The processor that owns it; in Spark ``spark/`` and the query's id."""
        return self._identity.owner_id

    @property
    def sequence_number(self) -> int | None:
        """The last handled event; with key lanes the last one up to which all are handled."""
        return _as_event(self._progress.sequence_number)

    @property
    def state(self) -> bytes | None:
        """The handler's own state."""
        return self._progress.state

    @state.setter
    def state(self, value: bytes | None) -> None:
        if not self._progress.has_state:
            raise StateRefusedError(self.partition_id)
        check_state(self.partition_id, value)
        self._progress.state = value if value is not None else b""

    @property
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to."""
        return self._progress.state_sequence_number

    def done(self, event: ReceivedEvent) -> None:
        """Note that every event up to this one is handled; may be called from a handler thread."""
        try:
            is_progress = self._progress.done_through(event)
        except ValueError as error:
            raise ValueError(
                f"event {event.sequence_number} was not handed to the handler of partition "
                f"{self.partition_id!r}: each partition's events belong to its own context"
            ) from error
        if is_progress:
            self._note_busy()
            self._count_passed_soon()

    def _count_passed_soon(self) -> None:
        """Called after ``done`` moved the position; a pump then counts the events passed."""

    def _note_busy(self) -> None:
        if self.busy_since_s is not None:
            self.busy_since_s = self._loop.time()

    def transaction(self, event: ReceivedEvent | None = None) -> AbstractAsyncContextManager[Any]:
        """Return a block in which a transaction of the store is open."""
        return self.open_transaction(event)

    def open_transaction(
        self,
        event: ReceivedEvent | None,
        *,
        is_cancelled: Callable[[], bool] | None = None,
    ) -> AbstractAsyncContextManager[Any]:
        """Return the block; a handler's thread passes whether its call was cancelled.

        Raises:
            TransactionsRefusedError: there are no transactions here.
        """
        del event, is_cancelled
        raise TransactionsRefusedError("there are no transactions here")

    async def commit_ended(self) -> None:
        """Return when no commit of the call is under way any more."""

    def begin_event(self, event: ReceivedEvent) -> None:
        """Note which event of the call is handled now."""
        self._current = event

    # For the calls of the handler.

    def begin_call(self, events: Sequence[ReceivedEvent] = ()) -> None:
        """Note that a call begins, with these events, and remember the state to return to."""
        self._events = events or self._events
        self._call, self._current = events, None
        self._progress.begin_call()
        self.busy_since_s = self._loop.time()

    def end_call(self, done: Sequence[Sequence[ReceivedEvent]] | None) -> None:
        """Note that the call ended, and that it completed these parts of its events.

        ``None``: it failed or was cancelled, so its effect on the state is undone.
        """
        self.busy_since_s = None
        if done:
            self.complete(*done)
        self._progress.end_call(keeps_state=done is not None)

    @property
    def unhandled_range(self) -> SequenceRange | None:
        """The first and the last event of the call under way that is not handled yet.

        Both are the event of ``process_event``, if that is called. ``None``: there is none.
        """
        if self.busy_since_s is None:
            return None
        current = self._current
        events = self._progress.unhandled(self._call) if current is None else (current,)
        if not events:
            return None
        return SequenceRange(first=events[0].sequence_number, last=events[-1].sequence_number)

    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event is still to be handled."""
        return self._progress.is_unhandled(event)

    def unhandled(self, events: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
        """Return those of these events, in order, that are still to be handled."""
        return self._progress.unhandled(events)

    def complete(self, *parts: Sequence[ReceivedEvent]) -> None:
        """Note that these events are handled or given up."""
        self._on_done(self._progress.done(*parts))


def _as_event(sequence_number: int | None) -> int | None:
    """Return ``None`` for the position before the first event: there is no event -1."""
    return None if sequence_number == BEFORE_FIRST_SEQUENCE_NUMBER else sequence_number


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
        self._activity = scope.activity
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
        return context

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers."""
        stored = self._checkpointer.stored
        return None if stored is None else _as_event(stored.sequence_number)

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
        self._is_in_transaction = True
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
            if not is_over:
                self._progress.state = state
            raise
        finally:
            self._is_in_transaction = False

    def _part(self, event: ReceivedEvent | None) -> Sequence[ReceivedEvent]:
        """Return the events of the call that a transaction completes."""
        if event is None:
            return self._call if self._current is None else (self._current,)
        at = bisect_left(self._call, event.sequence_number, key=NUMBER_OF)
        if at == len(self._call) or self._call[at].sequence_number != event.sequence_number:
            raise ValueError(
                f"event {event.sequence_number} is not one of this call of partition "
                f"{self.partition_id!r}: transaction() completes events of the call it is in"
            )
        return self._call[: at + 1]

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
        self._refuse_in_transaction("done")
        if self._progress.has_state:
            super().done(event)
            return
        self._note_busy()
        events = self._up_to(event)
        if not events:
            return
        if get_ident() == self._thread_id:
            self.complete(events)
        else:  # The loop runs it before it sees the call's end, which comes in the same way.
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
        if any(len(part) for part in parts):
            self._activity.progressed_at_s = self._loop.time()
        super().complete(*parts)

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
        self._activity.progressed_at_s = self._loop.time()
        self._on_done(self._progress.count_passed())

    def _up_to(self, event: ReceivedEvent) -> Sequence[ReceivedEvent]:
        events = self._events
        at = bisect_left(events, event.sequence_number, key=NUMBER_OF)
        if at == len(events) or events[at].sequence_number != event.sequence_number:
            # It is done already, or of an earlier call: the events below it have another key.
            return ()
        self._events = events[at + 1 :]
        return events[: at + 1]


def _raise_if(is_cancelled: Callable[[], bool] | None) -> None:
    if is_cancelled is not None and is_cancelled():
        raise asyncio.CancelledError

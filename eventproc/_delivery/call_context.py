"""What a handler sees of one call. The progress itself is in ``_core/delivery/progress.py``."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final

from eventproc._core.delivery.checkpoints import BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.handler import PartitionContext
from eventproc._delivery.scope import PartitionIdentity
from eventproc.errors import StateRefusedError, TransactionsRefusedError
from eventproc.models import ConsumerGroup, ReceivedEvent, SequenceRange
from eventproc.models._checkpoint import check_state

TOLD_AGAIN_AFTER_S: Final = 60.0
"""A handler that goes on failing is logged again as a warning after so many seconds."""


@dataclass(slots=True)
class FailuresInRow:
    """Failed calls since one succeeded or an event was completed."""

    count: int = 0
    since_s: float = 0.0
    """Loop time of the first one."""

    error: str = ""
    """Of the last one."""

    given_up: int | None = None
    """The event that the failure policy's action is taken for now."""

    _told_s: float = 0.0

    def note(self, error: str, now_s: float) -> bool:
        """Count one more; return whether it is to be told: the first, and then one a minute."""
        self.count, self.error = self.count + 1, error
        if self.count == 1:
            self.since_s = now_s
        elif now_s - self._told_s < TOLD_AGAIN_AFTER_S:
            return False
        self._told_s = now_s
        return True


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
        self.variables = copy_context()
        """The context variables of all calls, which are tasks of their own."""

        self._clock = self._loop.time
        self.task: asyncio.Task[Any] | None = None
        """The task of the call under way, or of the last one."""

        self._caller: asyncio.Task[Any] | None = None
        """The task that the call is made for; its cancellation is one of the call."""

        self.is_expired = False
        """Whether ``interrupt`` cancelled the call."""

        self.failures = FailuresInRow()
        """Of the calls with the events that are being retried, or of ``initialize``."""

        self._events: Sequence[ReceivedEvent] = ()
        """The events that ``done`` may name with key lanes, also after the call has returned: those
        of the last call that had any, without what ``done`` has taken from them."""

        self._call_events: Sequence[ReceivedEvent] = ()
        """The events of the call under way; none in a call like ``on_idle``."""

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
        return as_event(self._progress.sequence_number)

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
                f"{self.partition_id!r}: report it with the context of its own partition"
            ) from error
        if is_progress:
            self._note_busy()
            self._count_passed_soon()

    def _count_passed_soon(self) -> None:
        """Called after ``done`` moved the position; a pump then counts the events passed."""

    def _note_busy(self) -> None:
        if self.busy_since_s is not None:
            self.busy_since_s = self._clock()

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

    @property
    def is_interrupted(self) -> bool:
        """Whether the call under way was cancelled."""
        return self.is_expired or (self._caller is not None and self._caller.cancelling() > 0)

    def interrupt(self) -> None:
        """Cancel the call under way, if that was not done before."""
        if not self.is_expired and self.task is not None:
            self.is_expired = True
            self.task.cancel()

    # For the calls of the handler.

    @property
    def unfinished(self) -> ReceivedEvent | None:
        """The event that ``process_event`` was called with last, unless it is handled."""
        event = self._current
        return event if event is not None and self.is_unhandled(event) else None

    def enter(self, caller: asyncio.Task[Any] | None = None) -> None:
        """Note that the next calls are made in this task, for the task *caller* if any."""
        self.task, self._caller = asyncio.current_task(), caller

    def begin_call(self, events: Sequence[ReceivedEvent] = (), now_s: float | None = None) -> None:
        """Note that a call begins, with these events, and remember the state to return to."""
        self._events = events or self._events
        self._call_events, self._current, self.is_expired = events, None, False
        if self._progress.has_state:
            self._progress.begin_call()
        self.busy_since_s = self._clock() if now_s is None else now_s

    def left_of(self, events: Sequence[ReceivedEvent]) -> Sequence[Sequence[ReceivedEvent]]:
        """Return what ``done`` left of these events of the call, in parts; with a state, all."""
        left = self._events if events else events
        return (left,) if left or self._progress.has_state else ()

    def end_call(self, done: Sequence[Sequence[ReceivedEvent]] | None) -> None:
        """Note that the call ended, and that it completed these parts of its events.

        ``None``: it failed or was cancelled, so its effect on the state is undone.
        """
        self.busy_since_s = None
        self._call_events, self._current = (), None  # An abandoned thread may still ask for them.
        if done:
            self.complete(*done)
        if self._progress.has_state:
            self._progress.end_call(keeps_state=done is not None)

    @property
    def unhandled_range(self) -> SequenceRange | None:
        """The first and the last event of the call under way that is not handled yet.

        Both are the event of ``process_event``, if that is called. ``None``: there is none.
        """
        if self.busy_since_s is None:
            return None
        current = self._current
        events = self._progress.unhandled(self._call_events) if current is None else (current,)
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
        """Note that these events are handled or given up: first in the progress, then by *on_done*.

        *on_done* is the checkpointer's ``note``, or that of the key lanes, which calls it.
        """
        self._on_done(self._progress.done(*parts))


def as_event(sequence_number: int | None) -> int | None:
    """Return ``None`` for the position before the first event: there is no event -1."""
    return None if sequence_number == BEFORE_FIRST_SEQUENCE_NUMBER else sequence_number

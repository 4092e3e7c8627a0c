"""What users subclass, and what their code is given.

One handler instance serves one partition, one call at a time unless ``key_lanes`` is above 1. The
order of its life is: ``initialize``, any number of ``process_events`` (and ``process_error`` and
``process_idle``), ``close``.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from eventproc.errors import EventProcError, OwnershipLostError
from eventproc.logs import shown
from eventproc.models import CloseReason, ConsumerGroup, ReceivedEvent


class PartitionContext(ABC):
    """What a handler may know of its partition, and ask of it."""

    @property
    @abstractmethod
    def partition_id(self) -> str:
        """Which partition this is."""

    @property
    @abstractmethod
    def consumer_group(self) -> ConsumerGroup:
        """The group it is read for."""

    @property
    @abstractmethod
    def owner_id(self) -> str:
        """The processor that owns it."""

    @property
    @abstractmethod
    def sequence_number(self) -> int | None:
        """The last handled event; ``None`` before the first where there was none to go on from."""

    @property
    @abstractmethod
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers."""

    @property
    @abstractmethod
    def lag(self) -> int | None:
        """Events in the hub that are not handled yet; ``None`` while the hub did not say."""

    @property
    @abstractmethod
    def lag_seconds(self) -> float | None:
        """By how much the last handled event is older than the newest in the hub; 0 at the end.

        By the hub's own clock. ``None`` while the hub did not say, or nothing was handled yet.
        """

    @property
    @abstractmethod
    def is_owned(self) -> bool:
        """Whether the lease may be trusted now. Ask before an effect that cannot be undone."""

    @property
    def is_replay(self) -> bool:
        """Whether it is known that these events may have been handled before.

        A Spark sink knows it of a whole batch. A processor does not keep account of it: there it is
        ``False`` although events come again after a crash or a theft.
        """
        return False

    @property
    @abstractmethod
    def state(self) -> bytes | None:
        """The handler's own state, as of the last handled event; restored on any owner."""

    @state.setter
    @abstractmethod
    def state(self, value: bytes | None) -> None:
        """Replace the state. It is stored in the same write as the position it belongs to.

        Raises:
            TypeError: it is not bytes.
            StateTooLargeError: above ``STATE_BYTES_MAX``.
            StateRefusedError: with ``key_lanes`` above 1, where no position has a state of its own.
        """

    @property
    @abstractmethod
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to.

        It differs from ``sequence_number`` only after a processor of another SDK, which knows
        nothing of state, moved the checkpoint.
        """

    @abstractmethod
    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store that everything up to ``event`` is handled; returns when it is stored.

        Without an event: up to the last event of the call before, or of this call once it ended.
        State goes along.

        With ``key_lanes`` above 1 an event stands for itself and for those before it in the same
        call, and for nothing outside of it; what is stored is everything that is known to be
        handled in the partition.

        Raises:
            ValueError: the event is none that this partition's handler was given.
            OwnershipLostError: the partition belongs to somebody else now; nothing was stored.
                A call during which the loss is noticed may be cancelled before it gets this.
        """

    @abstractmethod
    def done(self, event: ReceivedEvent) -> None:
        """Say that everything up to ``event`` is handled, without waiting for a write.

        Should this call fail later, those events do not come again, and the state is taken back
        no further than to here. With ``key_lanes`` above 1: the event, and those before it in the
        same call.
        """

    @abstractmethod
    def pause(self) -> None:
        """Receive nothing more from this partition until ``resume``; it stays owned.

        The call under way goes on. A pause ends with the ownership.
        """

    @abstractmethod
    def resume(self) -> None:
        """Take back ``pause``."""


class BatchError(EventProcError):
    """Raise it from ``process_events`` to say which events failed; all others are handled.

    Only those that failed come again, each by itself, then what was not tried.
    """

    def __init__(
        self,
        failed: Sequence[tuple[ReceivedEvent, Exception]],
        *,
        untried: Sequence[ReceivedEvent] = (),
    ) -> None:
        """Name events of this call.

        Args:
            failed: Events that failed, each with its error.
            untried: Events that were not touched yet, because of that.
        """
        if not failed:
            raise ValueError("no event failed: return instead of raising BatchError")
        event, error = failed[0]
        super().__init__(
            f"{len(failed)} of the events failed, first {event.sequence_number}: {shown(error)}"
        )
        self.failed = tuple(failed)
        self.untried = tuple(untried)

    @property
    def shown(self) -> Exception:
        """What to tell people: the error of the one event that failed, else this."""
        return self.failed[0][1] if len(self.failed) == 1 else self


class PartitionHandler:
    """Subclass this. One instance serves one partition, one call at a time.

    Write ``process_event``, or ``process_events`` where several at once are cheaper. Calls run on
    the event loop of the processor: code that blocks belongs into a ``BlockingPartitionHandler``.

    With ``key_lanes`` above 1 in the configuration, ``process_events`` and ``process_error`` are
    called for several keys at once, so what they share in ``self`` is shared by calls under way.
    Each call has events of one key, in order, and never two calls have the same key.
    """

    async def initialize(self, context: PartitionContext) -> None:
        """Called once, before the first event. What it raises is retried."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Handle one event. It may come again after a crash or a theft.

        What it raises concerns this event alone: the events before it are done.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define process_event or process_events"
        )

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order. It may come again after a crash or a theft.

        What it raises goes to ``process_error``; then, after a wait that grows, the events of the
        call come again one by one, so that the culprit shows itself. Events up to one that was
        given to ``context.done`` or ``context.checkpoint`` do not come again, and after a
        ``BatchError`` only what it names.
        """
        for index, event in enumerate(events):
            try:
                await self.process_event(context, event)
            except OwnershipLostError:
                raise
            except Exception as error:
                raise BatchError([(event, error)], untried=events[index + 1 :]) from error
            context.done(event)

    async def process_idle(self, context: PartitionContext) -> None:
        """Called each time that no event came for ``idle_after``; never beside another call."""

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        """Called with what ``initialize`` or ``process_events`` raised, before the next try."""

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Called once, at the end. ``context.checkpoint`` works unless ownership was lost."""


class BlockingPartitionContext:
    """The same knowledge for ordinary functions, which run in a thread of their own."""

    def __init__(self, context: PartitionContext, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self._is_cancelled: Callable[[], bool] = lambda: False

    @property
    def partition_id(self) -> str:
        """Which partition this is."""
        return self._context.partition_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The group it is read for."""
        return self._context.consumer_group

    @property
    def owner_id(self) -> str:
        """The processor that owns it."""
        return self._context.owner_id

    @property
    def sequence_number(self) -> int | None:
        """The last handled event; ``None`` before the first where there was none to go on from."""
        return self._context.sequence_number

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers."""
        return self._context.checkpointed_sequence_number

    @property
    def lag(self) -> int | None:
        """Events in the hub that are not handled yet; ``None`` while the hub did not say."""
        return self._context.lag

    @property
    def lag_seconds(self) -> float | None:
        """By how much the last handled event is older than the newest in the hub."""
        return self._context.lag_seconds

    @property
    def is_owned(self) -> bool:
        """Whether the lease may be trusted now. A thread cannot be stopped: look at this."""
        return self._context.is_owned

    @property
    def is_replay(self) -> bool:
        """Whether it is known that these events may have been handled before."""
        return self._context.is_replay

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for this call any more: its events come again, here or elsewhere.

        It is so as soon as the partition is lost, the lease lapsed, the call hung for
        ``stall_timeout``, or a shutdown's time is over. Return then, in whatever way.
        """
        return self._is_cancelled()

    def watch(self, is_cancelled: Callable[[], bool]) -> None:
        """For the thread that makes the calls: how to find out."""
        self._is_cancelled = is_cancelled

    @property
    def state(self) -> bytes | None:
        """The handler's own state; see ``PartitionContext.state``."""
        return self._context.state

    @state.setter
    def state(self, value: bytes | None) -> None:
        self._context.state = value

    @property
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to."""
        return self._context.state_sequence_number

    def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store that everything up to ``event`` is handled; returns when it is stored.

        Raises:
            OwnershipLostError: the partition belongs to somebody else now; nothing was stored.
            CancelledError: of ``concurrent.futures``: ``is_cancelled``, and the state was taken
                back; the event comes again.
        """
        asyncio.run_coroutine_threadsafe(self._checkpoint(event), self._loop).result()

    async def _checkpoint(self, event: ReceivedEvent | None) -> None:
        await self._context.checkpoint(event)

    def done(self, event: ReceivedEvent) -> None:
        """Say that everything up to ``event`` is handled; see ``PartitionContext.done``."""
        self._context.done(event)

    def pause(self) -> None:
        """Receive nothing more from this partition until ``resume``."""
        self._loop.call_soon_threadsafe(self._context.pause)

    def resume(self) -> None:
        """Take back ``pause``."""
        self._loop.call_soon_threadsafe(self._context.resume)


class BlockingPartitionHandler:
    """Subclass this to handle events with ordinary functions.

    Each partition has a thread of its own, so a call that blocks delays only its own partition.
    A thread cannot be stopped from outside: a long call should look at ``context.is_cancelled``.

    With ``key_lanes`` above 1 there is a thread for each lane as well, and ``process_events`` and
    ``process_error`` run in them for several keys at once: guard what they share.
    """

    def initialize(self, context: BlockingPartitionContext) -> None:
        """Called once, before the first event. What it raises is retried."""

    def process_event(self, context: BlockingPartitionContext, event: ReceivedEvent) -> None:
        """Handle one event; see ``PartitionHandler.process_event``."""
        raise NotImplementedError(
            f"{type(self).__name__} must define process_event or process_events"
        )

    def process_events(
        self, context: BlockingPartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order; see ``PartitionHandler.process_events``."""
        for index, event in enumerate(events):
            if context.is_cancelled:
                return
            try:
                self.process_event(context, event)
            except OwnershipLostError:
                raise
            except Exception as error:
                raise BatchError([(event, error)], untried=events[index + 1 :]) from error
            context.done(event)

    def process_idle(self, context: BlockingPartitionContext) -> None:
        """Called each time that no event came for ``idle_after``; never beside another call."""

    def process_error(self, context: BlockingPartitionContext, error: Exception) -> None:
        """Called with what ``initialize`` or ``process_events`` raised, before the next try."""

    def close(self, context: BlockingPartitionContext, reason: CloseReason) -> None:
        """Called once, at the end."""


HandlerFactory = Callable[[], PartitionHandler | BlockingPartitionHandler]
"""What makes a handler for a partition: usually the handler class itself."""

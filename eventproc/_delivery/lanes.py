"""How the events of one partition get to its handler: one call at a time, or in key lanes.

Rule 1: a lane handles events of one key at a time, and no two lanes handle the same key.
Rule 2: the number of received events above the position is bounded by ``max_in_flight_events``.
At the bound nothing more is received from this partition; other partitions are not affected.
Rule 3: an error in one lane stops the pump, which reports it.
"""

import asyncio
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence

from eventproc._base.tasks import users_code
from eventproc._core.delivery.key_queues import KeyQueues
from eventproc._delivery.call_context import CallContext
from eventproc._delivery.checkpointer import Checkpointer
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.context import LiveContext
from eventproc._delivery.handler_calls import HandlerCalls
from eventproc._delivery.scope import PartitionScope
from eventproc._group.pumps.stop_scope import StoppedError
from eventproc.errors import HandlerCancelledError
from eventproc.models import ReceivedEvent, SequenceRange


class Lanes(ABC):
    """Delivers events that the partition's progress has admitted."""

    @property
    @abstractmethod
    def room(self) -> int:
        """How many more events may be received."""

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether every event that was taken is done."""

    @property
    @abstractmethod
    def contexts(self) -> Sequence[CallContext]:
        """The contexts of all calls that may be under way; the first one is the partition's."""

    @property
    def busy_since_s(self) -> float | None:
        """Loop time since which the slowest call has completed nothing; ``None``: no call."""
        times = [context.busy_since_s for context in self.contexts]
        return min((since_s for since_s in times if since_s is not None), default=None)

    @property
    def unhandled_range(self) -> SequenceRange | None:
        """The first and the last unhandled event of the slowest call; ``None``: there is none."""
        slowest = min(self.contexts, key=lambda context: context.busy_since_s or math.inf)
        return slowest.unhandled_range

    @abstractmethod
    async def take(self, events: Sequence[ReceivedEvent]) -> None:
        """Deliver events; return when there is room for more."""

    @abstractmethod
    async def take_until_done(self, events: Sequence[ReceivedEvent]) -> None:
        """Deliver events; return when all events taken are done."""

    @abstractmethod
    async def give_up(self, event: ReceivedEvent, delivery_count: int) -> None:
        """Give up an event without a call: *delivery_count* processes died with it."""

    @abstractmethod
    async def end(self) -> None:
        """Wait for the calls under way; the stop scope cancels them when their time is over."""


class SerialLane(Lanes):
    """Calls the handler with all events in order, one call at a time."""

    def __init__(self, context: LiveContext, calls: HandlerCalls) -> None:
        self._context = context
        self._calls = calls

    @property
    def room(self) -> int:
        """No limit: a batch is received when the one before it is done."""
        return sys.maxsize

    @property
    def is_idle(self) -> bool:
        """Always: ``take`` returns when its events are done."""
        return True

    @property
    def contexts(self) -> Sequence[CallContext]:
        """One: all calls have it."""
        return (self._context,)

    async def take(self, events: Sequence[ReceivedEvent]) -> None:
        """Return when each of the events is done."""
        await self._calls.deliver(events, self._context)

    take_until_done = take

    async def give_up(self, event: ReceivedEvent, delivery_count: int) -> None:
        """Give up the next event."""
        await self._calls.give_up(event, delivery_count, self._context)

    async def end(self) -> None:
        """Return at once: the pump itself waits for the call."""


class Keyless:
    """The key of one event for which ``key_selector`` failed."""


class KeyLanes(Lanes):
    """Calls the handler for several keys at once, with the events of each key in order."""

    def __init__(
        self,
        context: LiveContext,
        calls: HandlerCalls,
        *,
        checkpointer: Checkpointer,
        scope: PartitionScope,
        config: EventProcessorConfig,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """Create the lanes; *on_failure* is called with an error that ended one."""
        self._context = context
        self._calls = calls
        self._checkpointer = checkpointer
        self._progress = checkpointer.progress
        self._stop_scope = scope.stop
        self._config = config
        self._on_failure = on_failure
        self._queues: KeyQueues[ReceivedEvent] = KeyQueues()
        self._lanes = [context.of_lane(self._note_done) for _ in range(config.key_concurrency)]
        self._free = list(self._lanes)
        self._tasks: set[asyncio.Task[None]] = set()
        self._room_made = asyncio.Event()

    @property
    def room(self) -> int:
        """How many more events may be received."""
        return self._config.max_in_flight_events - self._progress.window_size

    @property
    def is_idle(self) -> bool:
        """Whether everything that was received is done."""
        return not self._tasks and self._progress.unfinished_count == 0

    @property
    def contexts(self) -> Sequence[CallContext]:
        """One for each lane; ``on_idle`` and the like have the partition's."""
        return (self._context, *self._lanes)

    async def give_up(self, event: ReceivedEvent, delivery_count: int) -> None:
        """Give up an event; calls for other keys are not affected."""
        await self._calls.give_up(event, delivery_count, self._lanes[0])

    async def take(self, events: Sequence[ReceivedEvent]) -> None:
        """Queue events for free lanes; return when there is room for more."""
        for event in events:
            self._queues.add(self._key(event), event)
        self._fill()
        while self.room <= 0:
            self._room_made.clear()
            async with self._stop_scope.waiting():
                await self._room_made.wait()

    async def take_until_done(self, events: Sequence[ReceivedEvent]) -> None:
        """Queue events for free lanes; return when all events taken are done."""
        await self.take(events)
        while self._tasks:
            async with self._stop_scope.waiting():
                await asyncio.wait(self._tasks)

    async def end(self) -> None:
        """Wait for the calls of all lanes, and cancel them if this wait is cancelled.

        A call that ignores its cancellation is waited for, too: the partition may not be handed
        over while a handler works on it.
        """
        cancellation: asyncio.CancelledError | None = None
        while self._tasks:
            try:
                await asyncio.wait(self._tasks)
            except asyncio.CancelledError as error:
                cancellation = error
                for task in self._tasks:
                    task.cancel()
        if cancellation is not None:
            raise cancellation

    def _note_done(self, done_count: int) -> None:
        self._checkpointer.note(done_count)
        self._room_made.set()

    def _fill(self) -> None:
        while self._queues and self._free and self._stop_scope.reason is None:
            task = asyncio.create_task(self._work(self._free.pop()))
            self._tasks.add(task)
            task.add_done_callback(self._end_lane)

    async def _work(self, lane: LiveContext) -> None:
        """Handle one key after another while any is queued."""
        try:
            while self._queues and self._stop_scope.reason is None:
                key, run = self._queues.take(self._config.batch_size_max)
                check = self._checked_key if isinstance(key, Keyless) else None
                await self._calls.deliver(run, lane, check)
                self._queues.finish(key)
        finally:
            self._free.append(lane)

    def _end_lane(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error: BaseException | None
        if not task.cancelled():
            error = task.exception()
        elif self._stop_scope.reason is None:  # The user's code did: its events are never done.
            error = HandlerCancelledError(asyncio.CancelledError())
        else:
            return
        if error is not None and not isinstance(error, StoppedError):
            self._on_failure(error)

    def _key(self, event: ReceivedEvent) -> Hashable:
        try:
            with users_code():
                return self._checked_key(event)
        except Exception:  # noqa: BLE001 - the user's code; called again in the call, and reported
            return Keyless()

    def _checked_key(self, event: ReceivedEvent) -> Hashable:
        """Return the event's key; an error of ``key_selector`` is a failure of this event alone."""
        key = self._config.key_selector(event)
        hash(key)
        return key

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
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any, Final, cast

from eventproc._core.delivery.key_queues import KeyQueues
from eventproc._delivery.call_context import CallContext
from eventproc._delivery.checkpointer import Checkpointer
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.context import LiveContext
from eventproc._delivery.handler_calls import CANCELLED, HandlerCalls, Outcome, is_cancellation
from eventproc._delivery.scope import PartitionScope
from eventproc._group.pumps.stop_scope import StoppedError
from eventproc.errors import HandlerCancelledError
from eventproc.models import ReceivedEvent, SequenceRange

CALLS_PER_TASK: Final = 32
"""How many calls one task of a lane makes. Between two tasks, the event loop does all else, even if
the handler awaits nothing."""

ROOM_FRACTION: Final = 4
"""When no more may be received, the next batch waits for room for this part of the events."""


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
        self._pump: asyncio.Task[Any] | None = None
        """The task of the pump."""

        self._variables = copy_context()
        self._room_made = asyncio.Event()
        self._size_wanted = config.max_in_flight_events * (ROOM_FRACTION - 1) // ROOM_FRACTION
        self._is_full = False
        """Whether ``take`` waits for room."""

        self._loop = asyncio.get_running_loop()

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
        self._pump = asyncio.current_task()
        for event in events:
            try:
                self._queues.add(self._config.key_selector(event), event)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException:  # noqa: BLE001 - the user's code; called again, and reported
                self._queues.add(Keyless(), event)
        self._fill()
        while not self._has_room:
            self._is_full = True
            self._room_made.clear()
            with self._stop_scope.waiting():
                await self._room_made.wait()
            self._is_full = False

    async def take_until_done(self, events: Sequence[ReceivedEvent]) -> None:
        """Queue events for free lanes; return when all events taken are done."""
        await self.take(events)
        while self._tasks:
            with self._stop_scope.waiting():
                await self._until_ended()

    async def end(self) -> None:
        """Wait for the calls of all lanes, and cancel them if this wait is cancelled.

        A call that ignores its cancellation is waited for, too: the partition may not be handed
        over while a handler works on it.
        """
        cancellation: asyncio.CancelledError | None = None
        while self._tasks:
            try:
                await self._until_ended()
            except asyncio.CancelledError as error:
                cancellation = error
                for lane in self._lanes:
                    lane.interrupt()
                for task in self._tasks:
                    task.cancel()
        if cancellation is not None:
            raise cancellation

    @property
    def _has_room(self) -> bool:
        """Whether to receive more: enough for one batch of some size, or a lane has nothing to do.

        Each event that is done would make room for one, and to receive costs more than to handle.
        """
        size = self._progress.window_size
        return size <= self._size_wanted or (
            size < self._config.max_in_flight_events and bool(self._free) and not self._queues
        )

    def _note_done(self, done_count: int) -> None:
        self._checkpointer.note(done_count)
        if self._is_full and self._has_room:
            self._room_made.set()

    async def _until_ended(self) -> None:
        ended, _ = await asyncio.wait(self._tasks)
        self._tasks -= ended  # One that was cancelled before it began has not done so itself.

    def _fill(self) -> None:
        while self._queues and self._free and self._stop_scope.reason is None:
            lane = self._free.pop()
            self._begin(self._work(lane), lane.variables)

    def _begin(self, work: Coroutine[Any, Any, None], variables: Context) -> None:
        self._tasks.add(self._loop.create_task(work, context=variables))

    async def _work(self, lane: LiveContext) -> None:
        """Handle one key after another while any is queued, with the calls in this task.

        After a call that did not succeed, another task goes on: the user's code may have done
        anything to this one.
        """
        lane.enter()
        with self._ending():
            for calls_before in range(CALLS_PER_TASK):
                if not self._queues or self._stop_scope.reason is not None:
                    break
                key, run = self._queues.take(self._config.batch_size_max)
                check = self._checked_key if isinstance(key, Keyless) else None
                first = await self._calls.call_once(run, lane, check)
                if not first.is_done:
                    # The task may have been cancelled with the pump and all others of the program,
                    # or by what an earlier call left behind, such as a time-out that it did not
                    # end. A call that cancels itself does so again in the other task, and fails.
                    if (self._is_cancelled or calls_before) and is_cancellation(first):
                        first = CANCELLED
                    self._begin(self._go_on(lane, key, run, first), self._variables)
                    return
                self._queues.finish(key)
            self._release(lane)

    async def _go_on(
        self, lane: LiveContext, key: Hashable, run: Sequence[ReceivedEvent], first: Outcome
    ) -> None:
        """Go on with the events of one key after their first call; make the calls in tasks."""
        with self._ending():
            check = self._checked_key if isinstance(key, Keyless) else None
            await self._calls.deliver(run, lane, check, first)
            self._queues.finish(key)
            self._release(lane)

    def _release(self, lane: LiveContext) -> None:
        self._free.append(lane)
        self._fill()
        if self._is_full and self._has_room:
            self._room_made.set()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Note at the end of the block that this task has ended, and why."""
        try:
            yield
        except StoppedError:
            pass
        except asyncio.CancelledError as error:
            if self._stop_scope.reason is None:  # The user's code did: its events are never done.
                self._on_failure(HandlerCancelledError(error))
        except BaseException as error:  # noqa: BLE001 - the pump reports it
            self._on_failure(error)
        finally:
            self._tasks.discard(cast(asyncio.Task[None], asyncio.current_task()))

    @property
    def _is_cancelled(self) -> bool:
        """Whether the pump is, as far as is known: a wait of it may just have timed out."""
        return self._pump is not None and self._pump.cancelling() > 0

    def _checked_key(self, event: ReceivedEvent) -> Hashable:
        """Return the event's key; an error of ``key_selector`` is a failure of this event alone."""
        key = self._config.key_selector(event)
        hash(key)
        return key

"""Key lanes: several keys of one partition are handled at once, the events of one key in order.

Rule 1: a lane handles events of one key at a time, and no two lanes handle the same key.
Rule 2: the number of received events above the position is bounded by ``max_in_flight_events``.
At the bound nothing more is received from this partition; other partitions are not affected.
Rule 3: an error in one lane stops the pump, which reports it.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime

from eventproc.config import EventProcessorConfig
from eventproc.core.key_queues import KeyQueues, Watermark
from eventproc.errors import HandlerCancelledError
from eventproc.models import COMPLETED_RANGES_MAX, ReceivedEvent
from eventproc.partition.checkpointer import Checkpointer
from eventproc.partition.context import LiveContext
from eventproc.partition.handler_calls import Delivery
from eventproc.partition.lane_context import LaneContext
from eventproc.partition.stop_scope import StoppedError, StopScope


class Keyless:
    """The key of one event for which ``key_selector`` failed."""


class Lanes:
    """Delivers events in lanes, and computes the position up to which all are done."""

    def __init__(
        self,
        partition_context: LiveContext,
        *,
        delivery: Delivery,
        checkpointer: Checkpointer,
        stop_scope: StopScope,
        config: EventProcessorConfig,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """Create the lanes; *on_failure* is called with an error that ended one."""
        self._partition_context = partition_context
        self._delivery = delivery
        self._checkpointer = checkpointer
        self._stop_scope = stop_scope
        self._config = config
        self._on_failure = on_failure
        self._watermark: Watermark[tuple[str, datetime]] = Watermark(
            partition_context.reached, partition_context.completed
        )
        self._queues: KeyQueues[ReceivedEvent] = KeyQueues()
        self._lanes = [
            LaneContext(
                partition_context, complete=self._complete, is_unfinished=self._is_unfinished
            )
            for _ in range(config.key_concurrency)
        ]
        self._free = list(self._lanes)
        self._tasks: set[asyncio.Task[None]] = set()
        self._room_made = asyncio.Event()

    @property
    def room(self) -> int:
        """How many more events may be taken in."""
        return self._config.max_in_flight_events - self._watermark.window_size

    @property
    def is_idle(self) -> bool:
        """Whether everything that was taken in is done."""
        return not self._tasks and self._watermark.unfinished_count == 0

    @property
    def busy_since_s(self) -> float | None:
        """Loop time since which the slowest call has completed nothing; ``None``: no call."""
        since_s = [lane.busy_since_s for lane in self._lanes if lane.busy_since_s is not None]
        return min(since_s, default=None)

    def is_wanted(self, event: ReceivedEvent) -> bool:
        """Whether the event was neither taken in nor handled by a former owner."""
        return self._watermark.is_wanted(event.sequence_number)

    async def give_up(self, event: ReceivedEvent, delivery_count: int) -> None:
        """Give up an event without calling the handler, after *delivery_count* deaths with it."""
        self._watermark.admit(event.sequence_number, (event.offset, event.enqueued_time))
        await self._delivery.give_up(event, delivery_count, self._lanes[0])

    async def take_in(self, events: Sequence[ReceivedEvent]) -> None:
        """Queue events for free lanes; return when there is room for more."""
        for event in events:
            mark = (event.offset, event.enqueued_time)
            if self._watermark.admit(event.sequence_number, mark):
                self._queues.add(self._key(event), event)
        self._update_position(0)
        self._fill()
        while self.room <= 0:
            self._room_made.clear()
            async with self._stop_scope.waiting():
                await self._room_made.wait()

    async def take_through(self, events: Sequence[ReceivedEvent]) -> None:
        """Queue events for free lanes; return when all events taken in are done."""
        await self.take_in(events)
        while self._tasks:
            async with self._stop_scope.waiting():
                await asyncio.wait(self._tasks)

    async def end(self) -> None:
        """Wait for the calls under way; the stop scope cancels them when their budget is over."""
        try:
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()

    def _fill(self) -> None:
        while self._queues and self._free and self._stop_scope.reason is None:
            task = asyncio.create_task(self._work(self._free.pop()))
            self._tasks.add(task)
            task.add_done_callback(self._end_lane)

    async def _work(self, lane: LaneContext) -> None:
        """Handle one key after another while any is queued."""
        try:
            while self._queues and self._stop_scope.reason is None:
                key, run = self._queues.take(self._config.batch_size_max)
                lane.run = run
                check = self._checked_key if isinstance(key, Keyless) else None
                await self._delivery.hand(run, lane, check)
                self._queues.back(key)
        finally:
            lane.run = ()
            self._free.append(lane)

    def _end_lane(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error: BaseException | None
        if not task.cancelled():
            error = task.exception()
        elif self._stop_scope.reason is None:  # By the user's code: its events will never be done.
            error = HandlerCancelledError(asyncio.CancelledError())
        else:
            return
        if error is None or isinstance(error, StoppedError):
            self._fill()
        else:
            self._on_failure(error)

    def _key(self, event: ReceivedEvent) -> Hashable:
        try:
            return self._checked_key(event)
        except Exception:  # noqa: BLE001 - the user's code; called again in the call, and reported
            return Keyless()

    def _checked_key(self, event: ReceivedEvent) -> Hashable:
        """Return the event's key; an error of ``key_selector`` is a failure of this event alone."""
        key = self._config.key_selector(event)
        hash(key)
        return key

    def _is_unfinished(self, event: ReceivedEvent) -> bool:
        return self._watermark.is_unfinished(event.sequence_number)

    def _complete(self, events: Sequence[ReceivedEvent]) -> None:
        self._update_position(self._watermark.complete(event.sequence_number for event in events))

    def _update_position(self, done_count: int) -> None:
        watermark, context = self._watermark, self._partition_context
        completed = watermark.completed(COMPLETED_RANGES_MAX)
        number = watermark.sequence_number
        if number is not None and watermark.mark is not None and number != context.reached:
            offset, enqueued_time = watermark.mark
            context.move(number, offset, enqueued_time, completed)
            self._room_made.set()
        else:
            context.keep_completed(completed)
        if context.has_position:
            self._checkpointer.note(context.progress(), done_count)

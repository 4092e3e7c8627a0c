"""Several keys of one partition handled at once, those of one key in order.

Rule 1: a lane is busy with events of one key, and no other lane with that key.
Rule 2: what is received and not below the position is bounded. When that is full, nothing more is
received from this partition; the others do not notice.
Rule 3: what breaks in one lane ends the pump, and is told by it.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime

from eventproc.checkpointer import Checkpointer
from eventproc.config import EventProcessorConfig
from eventproc.context import LiveContext
from eventproc.core.lanes import KeyQueues, Watermark
from eventproc.delivery import Delivery
from eventproc.ending import EndedError, Ending
from eventproc.lane_context import LaneContext
from eventproc.models import COMPLETED_RANGES_MAX, ReceivedEvent


class Keyless:
    """Stands for the key of one event that has none, because ``key_of`` failed."""


class Lanes:
    """Hands events over in lanes, and keeps account of how far all of them are done."""

    def __init__(
        self,
        whole: LiveContext,
        *,
        delivery: Delivery,
        checkpointer: Checkpointer,
        ending: Ending,
        config: EventProcessorConfig,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """Put them together; *on_failure* is told of the error that ended a lane."""
        self._whole = whole
        self._delivery = delivery
        self._checkpointer = checkpointer
        self._ending = ending
        self._config = config
        self._on_failure = on_failure
        self._watermark: Watermark[tuple[str, datetime]] = Watermark(whole.reached, whole.completed)
        self._queues: KeyQueues[ReceivedEvent] = KeyQueues()
        self._lanes = [
            LaneContext(whole, complete=self._complete, is_unfinished=self._is_unfinished)
            for _ in range(config.key_lanes)
        ]
        self._free = list(self._lanes)
        self._tasks: set[asyncio.Task[None]] = set()
        self._risen = asyncio.Event()

    @property
    def room(self) -> int:
        """How many more events may be taken in."""
        return self._config.lane_window - self._watermark.window_size

    @property
    def is_idle(self) -> bool:
        """Whether everything that was taken in is done."""
        return not self._tasks and self._watermark.unfinished_count == 0

    @property
    def busy_since_s(self) -> float | None:
        """Since when the call that says nothing for longest does so."""
        since_s = [lane.busy_since_s for lane in self._lanes if lane.busy_since_s is not None]
        return min(since_s, default=None)

    def is_wanted(self, event: ReceivedEvent) -> bool:
        """Whether the event was neither taken in nor done before the last restart."""
        return self._watermark.is_wanted(event.sequence_number)

    async def give_up(self, event: ReceivedEvent, delivery_count: int) -> None:
        """Pass over an event that too many processes died of."""
        self._watermark.admit(event.sequence_number, (event.offset, event.enqueued_time))
        await self._delivery.give_up(event, delivery_count, self._lanes[0])

    async def take_in(self, events: Sequence[ReceivedEvent]) -> None:
        """Give events to lanes as these become free; return when there is room for more."""
        for event in events:
            mark = (event.offset, event.enqueued_time)
            if self._watermark.admit(event.sequence_number, mark):
                self._queues.add(self._key(event), event)
        self._keep_account(0)
        self._fill()
        while self.room <= 0:
            self._risen.clear()
            async with self._ending.waiting():
                await self._risen.wait()

    async def take_through(self, events: Sequence[ReceivedEvent]) -> None:
        """Give events to lanes, and return when everything that was taken in is done."""
        await self.take_in(events)
        while self._tasks:
            async with self._ending.waiting():
                await asyncio.wait(self._tasks)

    async def end(self) -> None:
        """Wait for the calls under way, which the ending cuts when their time is over."""
        try:
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()

    def _fill(self) -> None:
        while self._queues and self._free and self._ending.reason is None:
            task = asyncio.create_task(self._work(self._free.pop()))
            self._tasks.add(task)
            task.add_done_callback(self._end_lane)

    async def _work(self, lane: LaneContext) -> None:
        """Be busy with one key after another while there is something to do."""
        try:
            while self._queues and self._ending.reason is None:
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
        if task.cancelled():
            return
        error = task.exception()
        if error is None or isinstance(error, EndedError):
            self._fill()
        elif isinstance(error, Exception):
            self._on_failure(error)

    def _key(self, event: ReceivedEvent) -> Hashable:
        try:
            return self._checked_key(event)
        except Exception:  # noqa: BLE001 - the user's code; it fails again where that is dealt with
            return Keyless()

    def _checked_key(self, event: ReceivedEvent) -> Hashable:
        """Raise what keeps an event from having a key: that is a failure of this event alone."""
        key = self._config.key_of(event)
        hash(key)
        return key

    def _is_unfinished(self, event: ReceivedEvent) -> bool:
        return self._watermark.is_unfinished(event.sequence_number)

    def _complete(self, events: Sequence[ReceivedEvent]) -> None:
        self._keep_account(self._watermark.complete(event.sequence_number for event in events))

    def _keep_account(self, done_count: int) -> None:
        watermark, whole = self._watermark, self._whole
        completed = watermark.completed(COMPLETED_RANGES_MAX)
        number = watermark.sequence_number
        if number is not None and watermark.mark is not None and number != whole.reached:
            offset, enqueued_time = watermark.mark
            whole.move(number, offset, enqueued_time, completed)
            self._risen.set()
        else:
            whole.keep_completed(completed)
        if whole.is_anywhere:
            self._checkpointer.note(whole.progress(), done_count)

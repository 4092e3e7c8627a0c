"""The receive loop of one partition: receives, leaves out what is done, waits, passes to the lanes.

At most one batch is between the reader and the lanes.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from eventproc._delivery.checkpointer import Checkpointer
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.context import LiveContext
from eventproc._delivery.crash_guard import CrashGuard
from eventproc._delivery.flow_control import RateLimiter
from eventproc._delivery.handler_calls import HandlerCalls
from eventproc._delivery.lanes import KeyLanes, Lanes, SerialLane
from eventproc._delivery.reader import PartitionReader
from eventproc._delivery.scope import PartitionScope
from eventproc.models import EventPosition, ReceivedEvent

RECEIVE_WAIT_MAX: Final = timedelta(seconds=60)
"""The longest wait of one ``receive`` call; after it the pump calls again."""

RECEIVE_WAIT_MIN: Final = timedelta(seconds=0.01)
"""The shortest wait: a timer that fires a little early must not cause a busy loop."""


class Delivery:
    """The way of one partition's events from its reader to its handler."""

    def __init__(
        self,
        reader: PartitionReader,
        context: LiveContext,
        calls: HandlerCalls,
        *,
        checkpointer: Checkpointer,
        rate_limits: Sequence[RateLimiter],
        scope: PartitionScope,
        config: EventProcessorConfig,
        is_forced: bool,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """Receive nothing before ``run``.

        Args:
            reader: Receives.
            context: The context of the handler's calls.
            calls: Calls the handler.
            checkpointer: Has the progress; holds events back while the store fails.
            rate_limits: Those that other partitions share.
            scope: Ends the waits when the pump stops.
            config: The sizes of batches and lanes, and the partition's own limit.
            is_forced: Whether to deliver the first event even if its count is at the limit.
            on_failure: Called with an error that ended a lane.
        """
        self._reader = reader
        self._context = context
        self._calls = calls
        self._checkpointer = checkpointer
        self._stop_scope = scope.stop
        self._config = config
        self.is_delivering = False
        """Whether the pump waits for the handler, and not for the receiver."""

        self.is_throttled = False
        """Whether it waits for a rate limit, or for a store that accepts no checkpoints."""

        own = config.partition_rate_max
        self._rate_limits = [*rate_limits, *([] if own is None else [RateLimiter(own)])]
        self.lanes: Lanes = SerialLane(context, calls)
        if config.key_concurrency > 1:
            self.lanes = KeyLanes(
                context,
                calls,
                checkpointer=checkpointer,
                scope=scope,
                config=config,
                on_failure=on_failure,
            )
        self.guard = CrashGuard(
            reader.link,
            self.lanes,
            checkpointer,
            scope=scope,
            deliveries_max=config.failure_policy.deliveries_max,
            is_forced=is_forced,
        )

    async def run(self, first: EventPosition) -> None:
        """Receive and deliver until the pump stops, from *first* on if nothing was handled yet.

        Raises:
            StoppedError: the pump stops.
            PartitionStoppedError: it has to stop, because of the source or the failure policy.
            OwnershipLostError: another processor owns the partition.
            FormerHubError: the hub was deleted and created again.
        """
        progress = self._checkpointer.progress

        def position() -> EventPosition:
            offset, number = progress.offset, progress.sequence_number
            if offset is None:
                return first
            return EventPosition.from_offset(offset, sequence_number=number)

        idle_timeout = self._config.idle_timeout or timedelta.max
        loop = asyncio.get_running_loop()
        idle_since_s = loop.time()
        while True:
            left = idle_timeout - timedelta(seconds=loop.time() - idle_since_s)
            wait_max = min(RECEIVE_WAIT_MAX, max(left, RECEIVE_WAIT_MIN))
            events = await self._reader.next(position, self._events_max(), wait_max)
            if events:
                await self._deliver(events)
            elif loop.time() - idle_since_s < idle_timeout.total_seconds():
                continue
            elif self.lanes.is_idle:
                await self._calls.idle(self._context)
            idle_since_s = loop.time()

    def _events_max(self) -> int:
        rate_max = min((limit.batch_max for limit in self._rate_limits), default=sys.maxsize)
        return min(self._config.batch_size_max, rate_max, self.lanes.room)

    async def _deliver(self, events: Sequence[ReceivedEvent]) -> None:
        """Deliver those of the events that are still to be handled.

        Other events come when a link was opened again, or a former owner completed them.
        """
        checkpointer = self._checkpointer
        wanted = checkpointer.progress.admit(events)
        checkpointer.note(len(events) - len(wanted))  # Completed ones move the position, too.
        if not wanted:
            await self.lanes.take(())  # Waits if the completed ones left no room.
            return
        self.is_throttled = True
        if not checkpointer.has_room:
            with self._stop_scope.waiting():
                await checkpointer.until_room()
        for limit in self._rate_limits:
            await limit.wait(len(wanted), self._stop_scope)
        self.is_throttled = False
        self.is_delivering = True
        if self.guard.is_over:
            await self.lanes.take(wanted)
        else:
            await self.guard.deliver(wanted)
        self.is_delivering = False

"""Notices a partition that has work and completes none of it for ``stall_timeout``."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from eventproc.core.stall import Condition, StallStep, stall_step
from eventproc.errors import SourceError
from eventproc.models import CloseReason
from eventproc.partition.reader import PartitionReader
from eventproc.partition.scope import PartitionScope
from eventproc.pumps.stop_scope import StoppedError

CHECKS_PER_TIMEOUT: Final = 8
"""Checks in one time-out: a stall is noticed at most an eighth of the time-out late."""


class Watchdog:
    """Checks one pump periodically; reports a stall, and with a time-out for it stops the pump."""

    def __init__(
        self,
        stall_timeout: timedelta,
        failover_timeout: timedelta | None,
        *,
        reader: PartitionReader,
        scope: PartitionScope,
        busy_since_s: Callable[[], float | None],
        is_delivering: Callable[[], bool],
        is_pending: Callable[[], bool],
        is_held_back: Callable[[], bool],
    ) -> None:
        """Create the watchdog of one pump; ``watch`` runs it.

        Args:
            stall_timeout: See ``EventProcessorConfig.stall_timeout``.
            failover_timeout: See ``EventProcessorConfig.failover_timeout``.
            reader: Knows whether the hub has more events; its receiver is reopened.
            scope: Knows when there was progress; ends the pump when the partition is given up.
            busy_since_s: Loop time since which the slowest handler call has completed nothing.
            is_delivering: Whether the pump waits for the handler, and not for the receiver.
            is_pending: Whether events were received that are not done.
            is_held_back: Whether delivery waits on purpose: a pause, a rate limit, the lease.
        """
        self._timeout_s = stall_timeout.total_seconds()
        self._failover_s = None if failover_timeout is None else failover_timeout.total_seconds()
        self._reader = reader
        self._stop_scope = scope.stop
        self._counters = scope.counters
        self._log = scope.log
        self._last_progress = scope.last_progress
        self._busy_since_s = busy_since_s
        self._is_delivering = is_delivering
        self._is_pending = is_pending
        self._is_held_back = is_held_back
        self._clock = asyncio.get_running_loop().time
        self._since_s = self._clock()
        """Until then there was nothing to do, or the partition was held back."""

        self._was_reopened = False
        self.is_stalled = False
        """Whether a stall was detected and has not ended."""

    async def watch(self) -> None:
        """Check until the pump ends."""
        try:
            while True:
                async with self._stop_scope.waiting():
                    await asyncio.sleep(self._timeout_s / CHECKS_PER_TIMEOUT)
                await self._check()
        except StoppedError:
            return

    def _idle_s(self) -> float:
        return self._clock() - max(self._since_s, self._last_progress.at_s)

    async def _check(self) -> None:
        if self._is_held_back():
            self._since_s = self._clock()
        has_more = (
            self._idle_s() >= self._timeout_s
            and not self._is_delivering()
            and await self._has_more()
        )
        # Asked after the answer of the hub: events may have come meanwhile.
        idle_s, busy_since_s = self._idle_s(), self._busy_since_s()
        condition = Condition(
            idle_s=idle_s,
            call_s=None if busy_since_s is None else self._clock() - busy_since_s,
            has_work=has_more or self._is_pending(),
            is_starved=has_more and not self._is_delivering(),
            is_held_back=self._is_held_back(),
            is_reported=self.is_stalled,
            was_reopened=self._was_reopened,
        )
        if idle_s >= self._timeout_s and not condition.has_work:
            self._since_s = self._clock()  # It waits for new events, which is no stall.
        self._do(stall_step(condition, self._timeout_s, self._failover_s), condition)

    def _do(self, step: StallStep, condition: Condition) -> None:
        call_s = None if condition.call_s is None else round(condition.call_s, 3)
        log = self._log.bind(idle_s=round(condition.idle_s, 3), call_s=call_s)
        is_new = not self.is_stalled
        self.is_stalled = step is not StallStep.NOTHING
        self._counters.stall_count += is_new and self.is_stalled
        match step:
            case StallStep.NOTHING:
                self._was_reopened = False
                if not is_new:
                    self._log.info("stall_recovered")
            case StallStep.REPORT | StallStep.REOPEN:
                is_reopened = self._was_reopened = step is StallStep.REOPEN
                if is_new:
                    log.warning("stall_detected", is_reopened=is_reopened)
                if is_reopened:
                    self._reader.restart()
            case StallStep.GIVE_UP:
                log.error("partition_abandoned")
                self._stop_scope.give_up(CloseReason.STALLED)
            case StallStep.WAIT:
                pass

    async def _has_more(self) -> bool:
        """Whether the hub has events that were not received.

        ``False`` if the hub does not answer: an outage is reported by the reader.
        """
        newest = self._reader.newest_received
        if newest is None:
            return False
        try:
            properties = await self._reader.properties()
        except SourceError:
            return False
        return not properties.is_empty and properties.last_enqueued_sequence_number > newest

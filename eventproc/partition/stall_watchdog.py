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
    """Checks one pump periodically; on a stall it reopens the receiver, then stops the pump."""

    def __init__(
        self,
        stall_timeout: timedelta,
        *,
        reader: PartitionReader,
        scope: PartitionScope,
        progress: Callable[[], object],
        busy_since_s: Callable[[], float | None],
        is_pending: Callable[[], bool],
        is_held_back: Callable[[], bool],
    ) -> None:
        """Create the watchdog of one pump; ``watch`` runs it.

        Args:
            stall_timeout: See ``EventProcessorConfig.stall_timeout``.
            reader: Knows whether the hub has more events; its receiver is reopened.
            scope: Ends the pump when the partition is given up; counts and logs stalls.
            progress: Returns a value that changes whenever anything is received or completed.
            busy_since_s: Loop time since which the slowest handler call has completed nothing.
            is_pending: Whether events were received that are not done.
            is_held_back: Whether delivery waits on purpose: a pause, a rate limit, the lease.
        """
        self._timeout_s = stall_timeout.total_seconds()
        self._reader = reader
        self._stop_scope = scope.stop
        self._counters = scope.counters
        self._log = scope.log
        self._progress = progress
        self._busy_since_s = busy_since_s
        self._is_pending = is_pending
        self._is_held_back = is_held_back
        self._seen: object = None
        self._since_s = 0.0
        self.is_stalled = False
        """Whether a stall was detected and has not ended."""

    async def watch(self) -> None:
        """Check until the pump ends."""
        self._note_progress()
        try:
            while True:
                async with self._stop_scope.waiting():
                    await asyncio.sleep(self._timeout_s / CHECKS_PER_TIMEOUT)
                await self._check()
        except StoppedError:
            return

    async def _check(self) -> None:
        now_s = asyncio.get_running_loop().time()
        busy_since_s = self._busy_since_s()
        if self._progress() != self._seen or self._is_held_back():
            self._note_progress()
        idle_s = now_s - self._since_s
        condition = Condition(
            idle_s=idle_s,
            call_s=None if busy_since_s is None else now_s - busy_since_s,
            has_work=self._is_pending() or (idle_s >= self._timeout_s and await self._has_more()),
            is_held_back=self._is_held_back(),
            was_restarted=self.is_stalled,
        )
        if idle_s >= self._timeout_s and not condition.has_work:
            self._note_progress()  # It waits for new events, which is no stall.
        match stall_step(condition, self._timeout_s):
            case StallStep.RESTART:
                self.is_stalled = True
                self._counters.stall_count += 1
                self._log.warning("stall_detected", idle_s=round(idle_s, 3))
                self._reader.restart()
            case StallStep.GIVE_UP:
                if not self.is_stalled:
                    self._counters.stall_count += 1
                self.is_stalled = True
                self._log.error(
                    "partition_abandoned",
                    idle_s=round(idle_s, 3),
                    call_s=None if condition.call_s is None else round(condition.call_s, 3),
                )
                self._stop_scope.give_up(CloseReason.STALLED)
            case StallStep.NOTHING:
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

    def _note_progress(self) -> None:
        if self.is_stalled:
            self._log.info("stall_recovered")
        self.is_stalled = False
        self._seen = self._progress()
        self._since_s = asyncio.get_running_loop().time()

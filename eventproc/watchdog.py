"""Noticing that a partition is stuck, although nothing failed."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from eventproc.core.stall import Condition, StallStep, stall_step
from eventproc.ending import EndedError, Ending
from eventproc.errors import SourceError
from eventproc.logs import Logger
from eventproc.models import CloseReason
from eventproc.reception import Reception
from eventproc.statistics import Tally

LOOKS_PER_TIMEOUT: Final = 8
"""How often to look: a stall is noticed at most an eighth of the time-out late."""


class Watchdog:
    """Looks at one pump again and again. Does nothing but that while things go on."""

    def __init__(
        self,
        stall_timeout: timedelta,
        *,
        reception: Reception,
        ending: Ending,
        progress: Callable[[], object],
        busy_since_s: Callable[[], float | None],
        is_pending: Callable[[], bool],
        is_held_back: Callable[[], bool],
        tally: Tally,
        log: Logger,
    ) -> None:
        """Set it up.

        Args:
            stall_timeout: See the configuration.
            reception: Is asked whether there is more, and restarted.
            ending: Is told when the partition is given up.
            progress: Something that changes as soon as anything gets done.
            busy_since_s: Since when the slowest call of the handler got nothing done.
            is_pending: Whether events were received that are not done.
            is_held_back: Whether nothing may be handed over now, for a good reason.
            tally: Counts stalls.
            log: Where to tell of them.
        """
        self._timeout_s = stall_timeout.total_seconds()
        self._reception = reception
        self._ending = ending
        self._progress = progress
        self._busy_since_s = busy_since_s
        self._is_pending = is_pending
        self._is_held_back = is_held_back
        self._tally = tally
        self._log = log
        self._seen: object = None
        self._since_s = 0.0
        self._was_restarted = False

    @property
    def is_stalled(self) -> bool:
        """Whether a stall was noticed and is not over."""
        return self._was_restarted

    async def watch(self) -> None:
        """Look until the pump ends."""
        self._note_progress()
        try:
            while True:
                async with self._ending.waiting():
                    await asyncio.sleep(self._timeout_s / LOOKS_PER_TIMEOUT)
                await self._look()
        except EndedError:
            return

    async def _look(self) -> None:
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
            was_restarted=self._was_restarted,
        )
        if idle_s >= self._timeout_s and not condition.has_work:
            self._note_progress()  # It waits for events, and does that well.
        match stall_step(condition, self._timeout_s):
            case StallStep.RESTART:
                self._was_restarted = True
                self._tally.stall_count += 1
                self._log.warning("partition_stalled", idle_s=round(idle_s, 3))
                self._reception.restart()
            case StallStep.GIVE_UP:
                if not self._was_restarted:
                    self._tally.stall_count += 1
                self._was_restarted = True
                self._log.error(
                    "partition_given_up",
                    idle_s=round(idle_s, 3),
                    call_s=None if condition.call_s is None else round(condition.call_s, 3),
                )
                self._ending.give_up(CloseReason.STALLED)
            case StallStep.NOTHING:
                pass

    async def _has_more(self) -> bool:
        """Whether the hub has events that were not received.

        A hub that does not say is out, and that is somebody else's to tell.
        """
        newest = self._reception.newest_received
        if newest is None:
            return False
        try:
            properties = await self._reception.properties()
        except SourceError:
            return False
        return not properties.is_empty and properties.last_enqueued_sequence_number > newest

    def _note_progress(self) -> None:
        if self._was_restarted:
            self._log.info("partition_unstalled")
        self._was_restarted = False
        self._seen = self._progress()
        self._since_s = asyncio.get_running_loop().time()

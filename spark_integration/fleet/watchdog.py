"""Stops a processor whose executor has died, and kills one that does not stop in time.

Runs in a thread of its own: a handler that blocks the event loop blocks everything on that loop,
but the processor's store thread still renews its leases. As a last resort the watchdog ends the
process.
"""

import faulthandler
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from eventproc.concurrency.background import Background
from eventproc.logs import ConditionLogger, get_logger

POLL_S: Final = 0.5

BLOCKED_S: Final = 10.0
"""An event loop without progress for this long is logged as blocked."""


class MemberWatchdog(Background):
    """Watches one member while its ``with`` block runs."""

    def __init__(
        self,
        owner_id: str,
        *,
        stop_timeout: timedelta,
        idle_s: Callable[[], float],
        on_stop: Callable[[str], None],
        end_process: Callable[[], None] | None = None,
    ) -> None:
        """Prepare a watchdog; entering its block starts it.

        Args:
            owner_id: The member's owner id, for the log.
            stop_timeout: How long a stop may take before the watchdog ends the process.
            idle_s: Returns the seconds since the event loop last made progress.
            on_stop: Called with the reason if the member should stop.
            end_process: Ends the process. Default: exit at once, after dumping all stacks.
        """
        super().__init__("eventproc-fleet-watchdog")
        self._stop_timeout_s = stop_timeout.total_seconds()
        self._idle_s = idle_s
        self._on_stop = on_stop
        self._end_process = end_process or _end_process
        self._until_s: float | None = None
        self._parent = os.getppid()
        self._log = get_logger("eventproc.spark.fleet", owner_id=owner_id)
        self._block = ConditionLogger(
            self._log, "fleet_member_blocked", "fleet_member_block_recovered"
        )

    def expect_end(self) -> None:
        """End the process ``stop_timeout`` from now. May be called by a signal handler."""
        self._until_s = time.monotonic() + self._stop_timeout_s

    def _run(self) -> None:
        while not self._ended.wait(POLL_S):
            if os.getppid() != self._parent:  # Spark's daemon died: it cannot signal
                self._on_stop("the executor is gone")
            self._check_loop()
            if self._until_s is not None and time.monotonic() > self._until_s:
                self._log.error("fleet_member_stop_timed_out", seconds=self._stop_timeout_s)
                self._end_process()
                return

    def _check_loop(self) -> None:
        idle_s = self._idle_s()
        if idle_s > BLOCKED_S:
            self._block.note(seconds=round(idle_s, 1))
        else:
            self._block.end()


def _end_process() -> None:
    """Dump the stacks of all threads, one of which shows what hangs, and exit."""
    if sys.__stderr__ is not None:
        faulthandler.dump_traceback(sys.__stderr__)
    os._exit(1)

"""No member of a fleet lives on where nobody can tell it anything.

In a thread of its own, because a handler that blocks the event loop keeps everything on that loop
from happening, signals among them, but not its leases from being renewed. The last resort is the
end of the process.
"""

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from eventproc.logs import get_logger

LOOK_S: Final = 0.5

BLOCKED_S: Final = 10.0
"""An event loop that does nothing for this long is worth a warning."""


class FleetWatch:
    """Watches over a member while its block lasts."""

    def __init__(
        self,
        owner_id: str,
        *,
        stop_timeout: timedelta,
        idle_s: Callable[[], float],
        on_stop: Callable[[str], None],
        end_process: Callable[[], None] | None = None,
    ) -> None:
        """Watch nothing yet.

        Args:
            owner_id: Whose.
            stop_timeout: How long a stop may take.
            idle_s: For how long its event loop has done nothing.
            on_stop: Gets the reason, if this sees one to stop.
            end_process: Ends the process, at once, if not given.
        """
        self._stop_timeout_s = stop_timeout.total_seconds()
        self._idle_s = idle_s
        self._on_stop = on_stop
        self._end_process = end_process or _end_process
        self._until_s: float | None = None
        self._is_blocked = False
        self._ended = threading.Event()
        self._parent = os.getppid()
        self._log = get_logger("eventproc.spark.fleet", owner_id=owner_id)

    def __enter__(self) -> Self:
        """Begin."""
        threading.Thread(target=self._keep, name="eventproc-fleet-watch", daemon=True).start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Watch no more."""
        self._ended.set()

    def expect_end(self) -> None:
        """From now on the member has so long to stop. May be called by a signal's handler."""
        self._until_s = time.monotonic() + self._stop_timeout_s

    def _keep(self) -> None:
        while not self._ended.wait(LOOK_S):
            if os.getppid() != self._parent:  # Spark's daemon, which would tell us of everything
                self._on_stop("the executor is gone")
            self._look_at_loop()
            if self._until_s is not None and time.monotonic() > self._until_s:
                self._log.error("fleet_member_overdue", seconds=self._stop_timeout_s)
                self._end_process()
                return

    def _look_at_loop(self) -> None:
        idle_s = self._idle_s()
        if idle_s > BLOCKED_S and not self._is_blocked:
            self._log.warning("fleet_member_blocked", seconds=round(idle_s, 1))
        elif idle_s < BLOCKED_S and self._is_blocked:
            self._log.info("fleet_member_unblocked")
        self._is_blocked = idle_s > BLOCKED_S


def _end_process() -> None:
    """What each thread does is said first: one of them is why."""
    if sys.__stderr__ is not None:
        faulthandler.dump_traceback(sys.__stderr__)
    os._exit(1)

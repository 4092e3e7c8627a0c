"""Logs the begin and end of an outage of the hub, and computes the waits between attempts."""

import time
from datetime import timedelta
from typing import Any, Final

from eventproc.config import Backoff
from eventproc.logs import ConditionLogger
from eventproc.retries import waits

BACKOFF: Final = Backoff(maximum=timedelta(seconds=5))
"""Waits between attempts to reach a hub."""


class Outage:
    """Failures in a row of one kind of request."""

    def __init__(
        self, condition: ConditionLogger, patience: timedelta, backoff: Backoff = BACKOFF
    ) -> None:
        """Log *condition*; the last attempt begins within *patience* of the first failure."""
        self._condition = condition
        self._patience_s = patience.total_seconds()
        self._wait_s = waits(backoff)
        self._began_s = 0.0

    @property
    def failure_count(self) -> int:
        """How many attempts have failed in a row."""
        return self._condition.count

    def wait_s(self, error: Exception, **fields: Any) -> float | None:  # noqa: ANN401 - of the log event
        """Note a failure; return the seconds to wait, or ``None`` if there is no time left."""
        now_s = time.monotonic()
        if not self.failure_count:
            self._began_s = now_s
        self._condition.note(error=str(error), **fields)
        wait_s = self._wait_s(self.failure_count)
        return wait_s if now_s + wait_s - self._began_s <= self._patience_s else None

    def wait_out(self, error: Exception) -> None:
        """Note a failure, and block before the next attempt; raise *error* if there is no time."""
        wait_s = self.wait_s(error)
        if wait_s is None:
            raise error
        time.sleep(wait_s)

    def end(self, **fields: object) -> None:
        """Note that a request was answered."""
        self._condition.end(**fields)

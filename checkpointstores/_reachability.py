"""Says once that a store stopped answering, and once that it answers again."""

from eventproc.logs import Logger


class Reachability:
    """Turns a stream of answers and failures into two log lines for each outage."""

    def __init__(self, log: Logger) -> None:
        """*log* already carries which store it is."""
        self._log = log
        self._failures = 0

    def failed(self, error: Exception) -> None:
        """Note a call without a useful answer."""
        if self._failures == 0:
            self._log.warning("store_stopped_answering", error=str(error))
        self._failures += 1

    def answered(self) -> None:
        """Note a call with an answer."""
        if self._failures:
            self._log.info("store_answered_again", failures=self._failures)
            self._failures = 0

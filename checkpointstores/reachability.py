"""Log events for a store that does not answer, or refuses requests."""

from eventproc.logs import ConditionLogger, Logger


class Reachability:
    """Logs two events for each outage or refusal: its start and its end."""

    def __init__(self, log: Logger) -> None:
        """*log* has the store as a bound field."""
        self._log = log
        self._outage = ConditionLogger(log, "store_requests_failed", "store_requests_recovered")
        self._refusal_by_right: dict[str, str] = {}

    def failed(self, error: Exception) -> None:
        """Note a call that failed temporarily."""
        self._outage.note(error=str(error))

    def refused(self, right: str, error: Exception) -> None:
        """Note a call that the service refused permanently.

        A refusal for the same reason, such as an expired token, is logged once for all rights.
        """
        self._outage.end(failures=self._outage.count)
        if str(error) not in self._refusal_by_right.values():
            self._log.error("store_refused", error=str(error))
        self._refusal_by_right[right] = str(error)

    def answered(self, right: str) -> None:
        """Note a successful call that needed *right*."""
        self._outage.end(failures=self._outage.count)
        refusal = self._refusal_by_right.pop(right, None)
        if refusal is not None and refusal not in self._refusal_by_right.values():
            self._log.info("store_refused_no_longer", error=refusal)

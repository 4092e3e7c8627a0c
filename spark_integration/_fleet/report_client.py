"""Sends a member's reports to the driver, and receives its request to stop.

Runs in a thread of its own, so that it works even if a handler blocks the processor's event loop.
"""

import socket
import time
from collections.abc import Callable
from typing import Final

from eventproc._base.threads import Background
from spark_integration._fleet.job import FleetJob
from spark_integration._fleet.report_server import HOLD_S, STOP
from spark_integration._fleet.statistics import Report, encode

ANSWER_MAX_S: Final = 10.0
"""After waiting this long for an answer, reconnect."""

RETRY_S: Final = 1.0

STOP_REQUESTED: Final = "the driver requested it"
"""After a stop for this reason, and no other, the driver does not start a replacement."""


class ReportClient(Background):
    """Reports while its ``with`` block runs. Callbacks run in the client's own thread."""

    def __init__(
        self,
        job: FleetJob,
        *,
        report: Callable[[], Report],
        on_answer: Callable[[Report], None],
        on_stop: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("eventproc-fleet-report-client")
        self._job = job
        self._report = report
        self._on_answer = on_answer
        self._on_stop = on_stop
        self._clock = clock
        self._failing_since_s: float | None = None
        """When a report first failed after the last answer."""

    def _run(self) -> None:
        """Report until the block ends; stop the member if the driver stays unreachable."""
        patience_s = self._job.driver_patience.total_seconds()
        while not self._ended.is_set():
            try:
                self._report_until_disconnected()
            except (OSError, EOFError):
                now_s = self._clock()
                if self._failing_since_s is None:
                    self._failing_since_s = now_s
                if now_s - self._failing_since_s > patience_s:
                    self._on_stop("the driver is unreachable")
                self._ended.wait(RETRY_S)

    def _report_until_disconnected(self) -> None:
        """Report over one connection until it breaks or the block ends."""
        address = (self._job.host, self._job.port)
        with (
            socket.create_connection(address, ANSWER_MAX_S) as connection,
            connection.makefile("rb") as answers,
        ):
            while not self._ended.is_set():
                report = self._report()
                connection.sendall(encode(report, self._job.token))
                answer = answers.readline()
                if not answer:
                    raise EOFError
                self._failing_since_s = None
                self._on_answer(report)
                if answer == STOP:
                    self._on_stop(STOP_REQUESTED)
                    self._ended.wait(HOLD_S)

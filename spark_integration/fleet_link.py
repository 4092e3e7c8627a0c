"""A member's line to its driver: it reports, and hears whether to stop.

In a thread of its own: a handler that blocks the processor's event loop does not cut it.
"""

import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from spark_integration.fleet_desk import HOLD_S, STOP
from spark_integration.fleet_order import FleetOrder
from spark_integration.fleet_status import Report, encode

ANSWER_MAX_S: Final = 10.0
"""An answer that takes longer than this is lost; call again."""

RETRY_S: Final = 1.0

TOLD: Final = "the driver said so"
"""The one reason to stop after which nobody is to take its place."""


class FleetLink:
    """Keeps reporting while its block lasts. What it calls, it calls in its own thread."""

    def __init__(
        self,
        order: FleetOrder,
        *,
        report: Callable[[], Report],
        on_answer: Callable[[Report], None],
        on_stop: Callable[[str], None],
    ) -> None:
        self._order = order
        self._report = report
        self._on_answer = on_answer
        self._on_stop = on_stop
        self._heard_at_s = 0.0
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        """Begin."""
        self._heard_at_s = time.monotonic()
        threading.Thread(target=self._keep, name="eventproc-fleet-link", daemon=True).start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Report no more."""
        self._ended.set()

    def _keep(self) -> None:
        """Report again and again; a driver that stays out of reach is a reason to stop."""
        patience_s = self._order.driver_patience.total_seconds()
        while not self._ended.is_set():
            try:
                self._talk()
            except (OSError, EOFError):
                if time.monotonic() - self._heard_at_s > patience_s:
                    self._on_stop("the driver is out of reach")
                self._ended.wait(RETRY_S)

    def _talk(self) -> None:
        """Report over one connection until it breaks."""
        place = (self._order.host, self._order.port)
        with (
            socket.create_connection(place, ANSWER_MAX_S) as connection,
            connection.makefile("rb") as answers,
        ):
            while not self._ended.is_set():
                report = self._report()
                connection.sendall(encode(report, self._order.token))
                answer = answers.readline()
                if not answer:
                    raise EOFError
                self._heard_at_s = time.monotonic()
                self._on_answer(report)
                if answer == STOP:
                    self._on_stop(TOLD)
                    self._ended.wait(HOLD_S)

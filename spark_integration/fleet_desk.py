"""Where the members of a fleet report to the driver, and hear whether to stop.

A member sends a report as a line and gets a line for it: ``go`` after a short while, or ``stop`` as
soon as the fleet is to stop. So a stop reaches every task at once, which Spark's own cancellation
does not do: it gives no notice, and kills.
"""

import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from spark_integration.fleet_status import Report, decode

GO: Final = b"go\n"
STOP: Final = b"stop\n"

HOLD_S: Final = 0.5
"""For how long an answer is kept back; so this is how often a member reports."""

LINE_BYTES_MAX: Final = 4_000_000
"""Of a report: some hundreds of bytes for each partition."""

CONNECTION_SILENCE_MAX_S: Final = 30.0
"""A connection on which nothing comes for this long is dead."""


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = True


class FleetDesk:
    """A listening socket on the driver."""

    def __init__(
        self, host: str, port: int, *, token: str, on_report: Callable[[Report], None]
    ) -> None:
        """Listen; ``port`` 0 takes any that is free.

        Raises:
            OSError: there can be no listening there.
        """
        self._token = token
        self._on_report = on_report
        self._stopping = threading.Event()
        desk = self

        class Conversation(socketserver.StreamRequestHandler):
            timeout = CONNECTION_SILENCE_MAX_S

            def handle(self) -> None:
                with suppress(OSError):  # the member is gone, or calls again
                    while desk.answer(self.rfile.readline(LINE_BYTES_MAX)):
                        self.wfile.write(STOP if desk.is_stopping else GO)

        self._server = _Server((host, port), Conversation)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="eventproc-fleet-desk", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def is_stopping(self) -> bool:
        """Whether members are told to stop."""
        return self._stopping.is_set()

    def tell_stop(self) -> None:
        """From now on every answer is to stop; those kept back are given now."""
        self._stopping.set()

    def answer(self, line: bytes) -> bool:
        """Take a report in and wait until it is time to answer; a stranger gets no answer."""
        try:
            report = decode(line, self._token)
        except ValueError:
            return False
        self._on_report(report)
        self._stopping.wait(HOLD_S)
        return True

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()

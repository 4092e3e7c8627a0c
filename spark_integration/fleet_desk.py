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

CLOSE_LOOK_S: Final = 0.05
"""Between two looks whether to listen no more."""


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = True


class FleetDesk:
    """A listening socket on the driver."""

    def __init__(
        self, host: str, port: int, *, token: str, on_report: Callable[[Report], bool]
    ) -> None:
        """Listen; ``port`` 0 takes any that is free.

        Args:
            host: The address to listen on.
            port: The port.
            token: What members know and nobody else.
            on_report: Gets each report, and returns whether its sender may go on.

        Raises:
            OSError: there can be no listening there.
        """
        self._token = token
        self._on_report = on_report
        self._stopping = threading.Event()
        self._is_closed = False
        desk = self

        class Conversation(socketserver.StreamRequestHandler):
            timeout = CONNECTION_SILENCE_MAX_S

            def handle(self) -> None:
                with suppress(OSError):  # the member is gone, or calls again
                    while answer := desk.answer(self.rfile.readline(LINE_BYTES_MAX)):
                        self.wfile.write(answer)

        self._server = _Server((host, port), Conversation)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(CLOSE_LOOK_S,),
            name="eventproc-fleet-desk",
            daemon=True,
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def tell_stop(self) -> None:
        """From now on every answer is to stop; those kept back are given now."""
        self._stopping.set()

    def answer(self, line: bytes) -> bytes | None:
        """Take a report in and wait until it is time to answer; a stranger gets no answer."""
        try:
            report = decode(line, self._token)
        except ValueError:
            return None
        may_go_on = self._on_report(report)
        if self._is_closed:
            return None
        return STOP if not may_go_on or self._stopping.wait(HOLD_S) else GO

    def close(self) -> None:
        """Listen no more, and answer nobody."""
        self._is_closed = True
        self._server.shutdown()
        self._server.server_close()

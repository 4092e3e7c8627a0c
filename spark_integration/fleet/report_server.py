"""The driver's TCP server for the reports of a fleet's members.

A member sends each report as one line: the fleet's token, then JSON. The server answers with one
line: ``go`` after ``HOLD_S``, or ``stop`` as soon as the fleet is to stop. So a request to stop
reaches every task at once. Spark's own cancellation cannot be used for that: it kills tasks without
notice.
"""

import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from spark_integration.fleet.statistics import Report, decode, has_token

GO: Final = b"go\n"
STOP: Final = b"stop\n"

HOLD_S: Final = 0.5
"""How long the server delays an answer. So a member reports at this interval."""

LINE_BYTES_MAX: Final = 4_000_000
"""The longest report. One has some hundreds of bytes for each partition."""

CONNECTION_SILENCE_MAX_S: Final = 30.0
"""A connection without data for this long is closed."""

TOKEN_WAIT_MAX_S: Final = 5.0
"""A connection that has not sent the token in this time is closed."""

CLOSE_POLL_S: Final = 0.05
"""How often the server checks whether to stop listening."""


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = True


class ReportServer:
    """Receives reports until it is closed, in threads of its own."""

    def __init__(
        self, host: str, port: int, *, token: str, on_report: Callable[[Report], bool]
    ) -> None:
        """Start to listen.

        Args:
            host: The address to listen on.
            port: The port; any free one if 0.
            token: The secret that only the fleet's members know.
            on_report: Called with each report; returns whether its sender may continue.

        Raises:
            OSError: the address or port cannot be used.
        """
        self._token = token
        self._on_report = on_report
        self._stopping = threading.Event()
        self._is_closed = False
        report_server = self

        class ReportHandler(socketserver.StreamRequestHandler):
            timeout = TOKEN_WAIT_MAX_S

            def handle(self) -> None:
                with suppress(OSError):  # the member has ended, or reconnects
                    # Nothing else of a stranger is read.
                    line = self.rfile.read(len(token.encode()))
                    if not has_token(line, token):
                        return
                    self.connection.settimeout(CONNECTION_SILENCE_MAX_S)
                    line += self.rfile.readline(LINE_BYTES_MAX)
                    while answer := report_server.answer(line):
                        self.wfile.write(answer)
                        line = self.rfile.readline(LINE_BYTES_MAX)

        self._server = _Server((host, port), ReportHandler)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(CLOSE_POLL_S,),
            name="eventproc-fleet-reports",
            daemon=True,
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return int(self._server.server_address[1])

    def request_stop(self) -> None:
        """Answer ``stop`` to every report from now on, also to reports that wait already."""
        self._stopping.set()

    def answer(self, line: bytes) -> bytes | None:
        """Process a report, wait, and return the answer; ``None`` if the report is not valid."""
        try:
            report = decode(line, self._token)
        except ValueError:
            return None
        may_continue = self._on_report(report)
        if self._is_closed:
            return None
        return STOP if not may_continue or self._stopping.wait(HOLD_S) else GO

    def close(self) -> None:
        """Stop listening and answering."""
        self._is_closed = True
        self._server.shutdown()
        self._server.server_close()

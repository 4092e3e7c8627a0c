"""The driver's TCP server for the reports of a fleet's members.

A member sends each report as one line: the fleet's token, then JSON. The server answers with one
line: ``go`` after ``HOLD_S``, or ``stop`` as soon as the fleet is to stop. So a request to stop
reaches every task at once. Spark's own cancellation cannot be used for that: it kills tasks without
notice.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from eventproc._base.http.address import ListenAddress
from eventproc._base.http.listener import Listener
from eventproc._base.threads import LoopThread
from spark_integration._fleet.statistics import Report, decode, has_token

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

STRANGERS_MAX: Final = 64
"""The most connections besides one for each member and one for its successor."""


class _Connection(asyncio.StreamReaderProtocol):
    """A connection; until it has sent the token, it is cut if there are too many."""

    def __init__(self, serve: Callable[..., Coroutine[Any, Any, None]]) -> None:
        super().__init__(asyncio.StreamReader(limit=LINE_BYTES_MAX), self._begin)
        self._serve = serve
        self.is_of_member = False

    async def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # The member may have ended or reconnected, sent too much, or fallen silent. If it is
            # cancelled when the server closes, Python 3.11 would log that as an error.
            with suppress(
                OSError,
                ValueError,
                TimeoutError,
                asyncio.IncompleteReadError,
                asyncio.CancelledError,
            ):
                await self._serve(self, reader, writer)
        finally:
            writer.close()


class ReportServer:
    """Receives reports until it is closed, in a thread of its own."""

    def __init__(
        self, host: str, port: int, *, size: int, token: str, on_report: Callable[[Report], bool]
    ) -> None:
        """Start to listen.

        Args:
            host: The address to listen on.
            port: The port; any free one if 0.
            size: How many members the fleet has.
            token: The secret that only the fleet's members know.
            on_report: Called with each report; returns whether its sender may continue.

        Raises:
            OSError: the address or port cannot be used.
        """
        self._token = token
        self._on_report = on_report
        self._stopping = asyncio.Event()
        self._listener = Listener(
            lambda: _Connection(self._serve),
            connections_max=2 * size + STRANGERS_MAX,
            is_idle=lambda each: not getattr(each, "is_of_member", False),
        )
        self._thread = LoopThread("eventproc-fleet-reports")
        try:
            bound = self._thread.call(self._listener.open(ListenAddress(host, port)))
        except OSError:
            self._thread.close()
            raise
        self.port = bound.port
        """The port on which the server listens."""

    def request_stop(self) -> None:
        """Answer ``stop`` to every report from now on, also to reports that wait already."""
        self._thread.call_soon(self._stopping.set)

    async def _serve(
        self,
        connection: _Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Answer the reports of one connection until it ends."""
        # Nothing else of a stranger is read.
        async with asyncio.timeout(TOKEN_WAIT_MAX_S):
            line = await reader.readexactly(len(self._token.encode()))
        if not has_token(line, self._token):
            return
        connection.is_of_member = True
        while True:
            async with asyncio.timeout(CONNECTION_SILENCE_MAX_S):
                line += await reader.readline()
            report = decode(line, self._token)
            writer.write(await self._answer(report))
            await writer.drain()
            line = b""

    async def _answer(self, report: Report) -> bytes:
        """Pass a report on, wait, and return the answer."""
        if not self._on_report(report):
            return STOP
        with suppress(TimeoutError):
            async with asyncio.timeout(HOLD_S):
                await self._stopping.wait()
        return STOP if self._stopping.is_set() else GO

    def close(self) -> None:
        """Stop listening and answering. Repeating is harmless. Not from ``on_report``."""
        if self._thread.is_closed:
            return
        self._thread.call(self._listener.close())
        self._thread.close()

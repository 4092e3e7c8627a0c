"""``HealthServer``: the endpoints of one process.

It has a thread of its own, because a blocked event loop cannot answer requests. All answers are
made in that thread, from snapshots of the processors.
"""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from eventproc.endpoints.address import ListenAddress, parse_address
from eventproc.endpoints.answer import Answer, Body, Route, Routes, verdict
from eventproc.endpoints.thread import ServerThread
from eventproc.health.watch import Watch
from eventproc.logs import get_logger
from eventproc.ports import HealthReporter, WatchedMember
from eventproc.settings import PositiveSpan, checked
from eventproc.telemetry.prometheus import CONTENT_TYPE, PrometheusText

LIVE_WITHIN: Final = timedelta(seconds=10)

BEATS: Final = 10
"""How many pings each thread gets within ``live_within``."""


class HealthServer(HealthReporter):
    """Serves ``/live``, ``/ready``, ``/partitions``, ``/metrics`` and ``/status``.

    It serves from the start of a processor to the end of its stop. Several processors of a process
    may share it: an answer has status 200 only if each of them is healthy.
    """

    @checked
    def __init__(
        self,
        address: str,
        *,
        live_within: PositiveSpan = LIVE_WITHIN,
        name: str = "address",
    ) -> None:
        """Check the address; nothing is opened before a processor starts.

        Args:
            address: ``PORT`` for this machine alone, ``HOST:PORT``, or ``unix:PATH``. Port 0 is any
                free one.
            live_within: A thread that has not run for this long is blocked.
            name: The name of the setting for the address, for error messages.

        Raises:
            ConfigurationError: the address has another form.
        """
        self._asked = parse_address(address, name)
        self._name = name
        self._live_within = live_within
        self._log = get_logger("eventproc.health")
        self._lock = threading.Lock()
        self._watches: dict[WatchedMember, Watch] = {}
        self._server: ServerThread | None = None
        self._metrics: PrometheusText | None = None
        self.address: ListenAddress | None = None
        """Where it listens, with its port; ``None`` while no processor runs."""

    async def begin(self, member: WatchedMember) -> None:
        """Report on a processor that starts; the first one starts the server.

        Raises:
            ConfigurationError: the address cannot be listened on, or the metrics cannot be read.
        """
        try:
            with self._lock:
                self._watches = {**self._watches, member: Watch(member, self._log)}
                if self._server is None:
                    self._metrics = PrometheusText(member.meter_provider)
                    self._server = ServerThread(
                        self._asked, self._routes(), self._name, beside=self._beat, log=self._log
                    )
                server = self._server
            bound = await server.bound()
        except BaseException:
            await self.end(member)
            raise
        if self.address is None:
            self.address = bound
            self._log.info("http_server_started", address=str(bound))

    async def end(self, member: WatchedMember) -> None:
        """Stop reporting on a processor; after the last one stop the server."""
        with self._lock:
            self._watches = {each: w for each, w in self._watches.items() if each is not member}
            if self._watches:
                return
            server, metrics = self._server, self._metrics
            self._server = self._metrics = self.address = None
        if metrics is not None:
            metrics.close()
        if server is not None:
            await server.stop()

    async def _beat(self) -> None:
        """Ping the processors' threads periodically. Runs in the server's thread."""
        beat_s = self._live_within.total_seconds() / BEATS
        while True:
            for watch in self._watches.values():
                watch.beat(beat_s, BEATS)
            await asyncio.sleep(beat_s)

    def _routes(self) -> Routes:
        async def metrics() -> Answer:
            return Answer(self._metrics.text() if self._metrics else "", content_type=CONTENT_TYPE)

        async def status() -> Answer:
            return Answer(verdict(w.status(BEATS) for w in self._watches.values()).body)

        return {
            "/live": self._route(lambda watch: watch.live(BEATS)),
            "/ready": self._route(lambda watch: watch.ready(BEATS)),
            "/partitions": self._route(Watch.partitions),
            "/metrics": metrics,
            "/status": status,
        }

    def _route(self, entry: Callable[[Watch], Body]) -> Route:
        async def route() -> Answer:
            return verdict(entry(watch) for watch in self._watches.values())

        return route

"""``HealthServer``: the endpoints of one process, and what they say of each of its processors.

The server has a thread of its own, because a blocked event loop cannot answer requests. All answers
are made in that thread, from snapshots of the processors.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Final

from eventproc._base.http.address import (
    Answer,
    Body,
    ListenAddress,
    Route,
    Routes,
    parse_address,
    verdict,
)
from eventproc._base.http.server import ServerThread
from eventproc._base.logs import ConditionLogger, Logger, get_logger, with_fields_of_processor
from eventproc._base.settings import PositiveSpan, checked
from eventproc._base.version import __version__
from eventproc._core.watching.health import parts, readiness
from eventproc.models._statistics import (
    GroupStatistics,
    ProcessorStatistics,
    ResourceProcessorStatistics,
)
from eventproc.ports import HealthReporter, WatchedMember
from eventproc.ports._health import Ping
from eventproc.telemetry._prometheus import CONTENT_TYPE, PrometheusText

__all__ = ["HealthServer"]

_FRAMES_MAX: Final = 3
"""How many frames of a blocked thread's stack are shown, the innermost first."""

_UNREAD: Final = "its statistics changed during each attempt to read them"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


class _WatchedThread:
    """An event loop of the processor: whether it runs.

    The checks (beats) for which it has not answered are counted, by another thread of the process.
    If the whole process is suspended, that one stands still as well, so the checked thread does not
    look blocked.
    """

    def __init__(self, what: str, ping: Ping, log: Logger) -> None:
        self._what = what
        self._ping = ping
        self._beats = 0
        """Checks since the thread was asked; 0 if it has answered."""

        self._is_answered = True
        self._thread: threading.Thread | None = None
        """Not its id: after its end, another thread may get that."""

        self._blocked = ConditionLogger(log, "thread_blocked", "thread_recovered")
        self._beat_s = 0.0

    @property
    def silent_s(self) -> float:
        """For how many seconds the thread has not run; 0 if it answered the newest ping."""
        return self._beats * self._beat_s

    def beat(self, beat_s: float, beats_max: int) -> None:
        """Ping the thread; log when it becomes blocked, and when it runs again."""
        self._beat_s = beat_s
        is_asked, self._is_answered = self._is_answered, False
        self._beats += 1
        if is_asked:
            self._ping(self._answer)
        if self._beats >= beats_max:
            silent_s = round(self.silent_s, 1)
            self._blocked.note(blocked_thread=self._what, silent_s=silent_s, at=self._place())
        else:
            self._blocked.end(blocked_thread=self._what)

    def reasons(self, beats_max: int) -> Sequence[str]:
        """Return why it is blocked, if it is."""
        if self._beats < beats_max:
            return []
        return [f"the {self._what} has not run for {self.silent_s:.0f} s: {self._place()}"]

    def _answer(self) -> None:
        self._thread = threading.current_thread()
        self._is_answered, self._beats = True, 0

    def _place(self) -> str:
        """Return file, line and function of the thread's innermost frames."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return "it has not begun" if thread is None else "its thread has ended"
        frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - there is no other
        places: list[str] = []
        while frame is not None and len(places) < _FRAMES_MAX:
            code = frame.f_code
            places.append(f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_name}")
            frame = frame.f_back
        return ", called by ".join(places) or "its thread has ended"


class _Watch:
    """Watches the threads of one processor, and describes its health."""

    def __init__(self, member: WatchedMember, log: Logger) -> None:
        self._member = member
        log = with_fields_of_processor(log)
        self._loop = _WatchedThread("event loop", member.ping_loop, log)
        self._store = _WatchedThread("store thread", member.ping_store, log)
        self._newest: GroupStatistics | None = None

    def beat(self, beat_s: float, beats_max: int) -> None:
        """Ping both threads; of a processor that has failed, the store's has ended."""
        if self._member.failure():
            return
        self._loop.beat(beat_s, beats_max)
        self._store.beat(beat_s, beats_max)

    def live(self, beats_max: int) -> Body:
        """Describe whether both threads run, and the processor has not failed."""
        failure = self._member.failure()
        reasons = [*self._loop.reasons(beats_max), *self._store.reasons(beats_max)]
        reasons = [failure] if failure else reasons
        return self._entry(
            reasons,
            event_loop_silent_s=self._loop.silent_s,
            store_thread_silent_s=self._store.silent_s,
        )

    def ready(self, beats_max: int) -> Body:
        """Describe whether it is a member of its group, and serves what it owns.

        While a thread is blocked, it serves nothing.
        """
        statistics = self._statistics()
        phase = self._member.phase()
        if statistics is None:
            return self._entry([_UNREAD], phase=phase.value)
        member = self._member
        reasons = [*self.live(beats_max)["reasons"]] or [
            *readiness(phase, statistics, member.display_name, member.awaited())
        ]
        return self._entry(reasons, phase=phase.value)

    def partitions(self) -> Body:
        """Describe each partition or resource that it owns."""
        statistics = self._statistics()
        if statistics is None:
            return self._entry([_UNREAD], partitions=[])
        owned = [
            {"name": part.name, "ok": not part.reasons, "reasons": [*part.reasons], **part.facts}
            for part in parts(statistics, self._member.display_name)
        ]
        red = [f"{part['name']}: {part['reasons'][0]}" for part in owned if part["reasons"]]
        return self._entry(red, partitions=owned)

    def status(self, beats_max: int) -> Body:
        """Return what the other endpoints say, with version, process id and counters."""
        live, ready, partitions = self.live(beats_max), self.ready(beats_max), self.partitions()
        # `/ready` gives the reason of a partition that is not served in a sentence, `/partitions`
        # after its name: once is enough here.
        said = {reason.partition(" ")[2].replace(" is ", ": ", 1) for reason in ready["reasons"]}
        more = [reason for reason in partitions["reasons"] if reason not in said]
        reasons = [*dict.fromkeys([*live["reasons"], *ready["reasons"], *more])]
        return {
            **live,
            **ready,
            **partitions,
            "ok": not reasons,
            "reasons": reasons,
            "version": __version__,
            "pid": os.getpid(),
            **self._figures(),
        }

    def _figures(self) -> Body:
        statistics = self._newest
        if statistics is None:
            return {}
        figures: Body = {
            "is_balanced": statistics.is_balanced,
            "lease_margin_s": _rounded(statistics.lease_margin_seconds),
            "store_error": statistics.store_error,
            "prepared": [self._member.display_name(name) for name in statistics.prepared],
        }
        if isinstance(statistics, ProcessorStatistics | ResourceProcessorStatistics):
            figures["counters"] = asdict(statistics.counters)
        return figures

    def _statistics(self) -> GroupStatistics | None:
        """Return a snapshot of the statistics; the previous one if none can be taken now."""
        self._newest = self._member.statistics() or self._newest
        return self._newest

    def _entry(self, reasons: Sequence[str], **facts: object) -> Body:
        group = self._member.group
        named = (
            {"resource_group": group.name}
            if group.is_of_resources
            else {
                "namespace": group.fully_qualified_namespace,
                "eventhub": group.eventhub_name,
                "consumer_group": group.name,
            }
        )
        owner_id = self._member.owner_id
        return {"owner_id": owner_id, **named, "ok": not reasons, "reasons": [*reasons], **facts}


_BEATS: Final = 10
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
        live_within: PositiveSpan = timedelta(seconds=10),
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
        self._watches: dict[WatchedMember, _Watch] = {}
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
                self._watches = {**self._watches, member: _Watch(member, self._log)}
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
        beat_s = self._live_within.total_seconds() / _BEATS
        while True:
            for watch in self._watches.values():
                watch.beat(beat_s, _BEATS)
            await asyncio.sleep(beat_s)

    def _routes(self) -> Routes:
        async def metrics() -> Answer:
            return Answer(self._metrics.text() if self._metrics else "", content_type=CONTENT_TYPE)

        async def status() -> Answer:
            return Answer(verdict(w.status(_BEATS) for w in self._watches.values()).body)

        return {
            "/live": self._route(lambda watch: watch.live(_BEATS)),
            "/ready": self._route(lambda watch: watch.ready(_BEATS)),
            "/partitions": self._route(_Watch.partitions),
            "/metrics": metrics,
            "/status": status,
        }

    def _route(self, entry: Callable[[_Watch], Body]) -> Route:
        async def route() -> Answer:
            return verdict(entry(watch) for watch in self._watches.values())

        return route

"""Watches one processor from the server's thread, and describes it."""

import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from eventproc.core.health import Pulse, parts, readiness
from eventproc.endpoints.answer import Body
from eventproc.logs import ConditionLogger, Logger, with_fields_of_processor
from eventproc.ports import WatchedMember
from eventproc.ports.health_reporter import Ping
from eventproc.statistics import GroupStatistics, ProcessorStatistics, ResourceProcessorStatistics
from eventproc.version import EVENTPROC_VERSION

FRAMES_MAX: Final = 3
"""How many frames of a blocked thread's stack are shown, the innermost first."""

UNREAD: Final = "its statistics changed during each attempt to read them"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


class WatchedThread:
    """An event loop of the processor: whether it runs."""

    def __init__(self, what: str, ping: Ping, log: Logger) -> None:
        self._what = what
        self._ping = ping
        self._pulse = Pulse()
        self._thread: threading.Thread | None = None
        """Not its id: after its end, another thread may get that."""

        self._blocked = ConditionLogger(log, "thread_blocked", "thread_recovered")
        self._beat_s = 0.0

    @property
    def silent_s(self) -> float:
        """For how many seconds the thread has not run; 0 if it answered the newest ping."""
        return self._pulse.beats * self._beat_s

    def beat(self, beat_s: float, beats_max: int) -> None:
        """Ping the thread; log when it becomes blocked, and when it runs again."""
        self._beat_s = beat_s
        if self._pulse.beat():
            self._ping(self._answer)
        if self._pulse.beats >= beats_max:
            silent_s = round(self.silent_s, 1)
            self._blocked.note(blocked_thread=self._what, silent_s=silent_s, at=self._place())
        else:
            self._blocked.end(blocked_thread=self._what)

    def reasons(self, beats_max: int) -> Sequence[str]:
        """Return why it is blocked, if it is."""
        if self._pulse.beats < beats_max:
            return []
        return [f"the {self._what} has not run for {self.silent_s:.0f} s: {self._place()}"]

    def _answer(self) -> None:
        self._thread = threading.current_thread()
        self._pulse.answer()

    def _place(self) -> str:
        """Return file, line and function of the thread's innermost frames."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return "it has not begun" if thread is None else "its thread has ended"
        frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - there is no other
        places: list[str] = []
        while frame is not None and len(places) < FRAMES_MAX:
            code = frame.f_code
            places.append(f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_name}")
            frame = frame.f_back
        return ", called by ".join(places) or "its thread has ended"


class Watch:
    """Watches the threads of one processor, and describes its health."""

    def __init__(self, member: WatchedMember, log: Logger) -> None:
        self._member = member
        log = with_fields_of_processor(log)
        self._loop = WatchedThread("event loop", member.ping_loop, log)
        self._store = WatchedThread("store thread", member.ping_store, log)
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
            return self._entry([UNREAD], phase=phase.value)
        member = self._member
        reasons = [*self.live(beats_max)["reasons"]] or [
            *readiness(phase, statistics, member.shown, member.awaited())
        ]
        return self._entry(reasons, phase=phase.value)

    def partitions(self) -> Body:
        """Describe each partition or resource that it owns."""
        statistics = self._statistics()
        if statistics is None:
            return self._entry([UNREAD], partitions=[])
        owned = [
            {"name": part.name, "ok": not part.reasons, "reasons": [*part.reasons], **part.facts}
            for part in parts(statistics, self._member.shown)
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
            "version": EVENTPROC_VERSION,
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
            "prepared": [self._member.shown(name) for name in statistics.prepared],
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

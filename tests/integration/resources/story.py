"""Processes that join, leave, are killed and frozen, by a seed, while they send to a fence."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.integration.resources.fence import EXPIRATION, FenceServer, Message

ROOT: Final = Path(__file__).parents[3]
NAMES: Final = ("a", "b/1", "c", "d", "e", "f")
COUNT_MIN, COUNT_MAX = 2, 4
"""How many processes may run, of which one at most is frozen."""

BLOCKING_FRACTION: Final = 0.25
UNSETTLED_FRACTION: Final = 0.3
"""The part of the events that come while the group still reacts to the one before."""

FRESH_S: Final = 0.4
"""A name is held if its newest message is not older, and its sender runs."""

MOMENT_S: Final = 0.05
TIMEOUT_S: Final = 60.0


@dataclass(slots=True)
class Process:
    """One process; times are those of the server's clock."""

    owner_id: str
    popen: subprocess.Popen[bytes]
    started_s: float
    terminated_s: float | None = None
    killed_s: float | None = None
    frozen: list[tuple[float, float]] = field(default_factory=list)
    """When it was frozen, and when it woke up."""

    frozen_s: float | None = None


class Story:
    """A group with one store and one server."""

    def __init__(self, place: Path, store: str, lease_mode: str, rng: Random) -> None:
        """Start nothing yet."""
        self._store = store
        self._place = place
        self._lease_mode = lease_mode
        self._rng = rng
        self.processes: list[Process] = []
        self.events: Counter[str] = Counter()
        self.fence = FenceServer()
        self.slack_s = 0.0
        """By how much a short sleep of this process was too long at most: the machine's load."""

    def play(self, count: int, say: Callable[[str], None] = lambda _: None) -> None:
        """Let so many events happen, and stop every process in order."""
        with self.fence:
            try:
                for _ in range(COUNT_MIN + 1):
                    self._join()
                self._settle()
                for number in range(count):
                    self._next()
                    if self._rng.random() > UNSETTLED_FRACTION:
                        self._settle()
                    time.sleep(self._rng.uniform(0, 0.6))
                    if number % 50 == 49:
                        say(f"{number + 1} of {count}: {dict(self.events)}")
                self._settle()
                self._end()
            finally:
                for process in self.processes:
                    if process.popen.poll() is None:
                        process.popen.kill()
                    process.popen.communicate()

    def _next(self) -> None:
        """Draw an event, and do it."""
        ready = self._ready()
        kinds = {"join": 2 if len(ready) < COUNT_MAX else 0}
        for kind in ("leave", "kill", "freeze"):
            kinds[kind] = 2 if len(ready) > COUNT_MIN else 0
        (kind,) = self._rng.choices(list(kinds), list(kinds.values()))
        self.events[kind] += 1
        if kind == "join":
            self._join()
            return
        process = self._rng.choice(ready)
        match kind:
            case "leave":
                process.terminated_s = time.monotonic()
                process.popen.terminate()
            case "kill":
                process.killed_s = time.monotonic()
                process.popen.kill()
            case _:
                self._freeze(process)

    def _join(self) -> None:
        number = len(self.processes)
        kind = "blocking" if self._rng.random() < BLOCKING_FRACTION else "async"
        owner_id = f"p{number}-{kind}"
        settings = {"kind": kind, "lease_mode": self._lease_mode}
        with (self._place / "output").open("ab") as output:
            popen = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.integration.resources.worker"),
                    *(str(self.fence.port), self._store, owner_id, ",".join(NAMES)),
                    json.dumps(settings),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=ROOT,
            )
        assert popen.stdout is not None
        assert popen.stdout.readline() == b"ready\n", f"{owner_id} did not start"
        self.processes.append(Process(owner_id, popen, time.monotonic()))

    def _freeze(self, process: Process) -> None:
        """Suspend a process for longer than the expiration."""
        process.frozen_s = time.monotonic()
        process.popen.send_signal(signal.SIGSTOP)
        time.sleep(EXPIRATION.total_seconds() + self._rng.uniform(0.2, 1.0))
        process.frozen.append((process.frozen_s, time.monotonic()))
        process.popen.send_signal(signal.SIGCONT)
        process.frozen_s = None

    def _ready(self) -> list[Process]:
        return [p for p in self.processes if p.terminated_s is None and p.killed_s is None]

    def _settle(self) -> None:
        """Wait until every name has a holder that runs, and every processor holds one."""
        until_s = time.monotonic() + TIMEOUT_S
        while not self._is_settled():
            assert time.monotonic() < until_s, f"not settled: {self.fence.newest}"
            self._doze()

    def _doze(self) -> None:
        """Sleep for a moment, and note by how much too long that was."""
        began_s = time.monotonic()
        time.sleep(MOMENT_S)
        self.slack_s = max(self.slack_s, time.monotonic() - began_s - MOMENT_S)

    def _is_settled(self) -> bool:
        ready = {p.popen.pid for p in self._ready()}
        newest: list[Message] = [m for n in NAMES if (m := self.fence.newest.get(n))]
        now_s = time.monotonic()
        fresh = [m for m in newest if m.pid in ready and now_s - m.at_s < FRESH_S]
        counts = Counter(m.pid for m in fresh)
        spread = max(counts.values(), default=0) - min(counts.values(), default=0)
        return len(fresh) == len(NAMES) and counts.keys() == ready and spread <= 1

    def _end(self) -> None:
        """Stop every process; each that was not killed ends with 0."""
        for process in self._ready():
            process.terminated_s = time.monotonic()
            process.popen.terminate()
        for process in self.processes:
            code = process.popen.wait(TIMEOUT_S)
            expected = 0 if process.killed_s is None else -signal.SIGKILL
            assert code == expected, f"{process.owner_id} ended with {code}"

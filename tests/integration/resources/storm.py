"""Processes that join, leave, are killed and frozen, by a seed, while they send to a fence.

The first event is always a freeze of a process whose sender is careless: what it still sends when
it wakes up has to be refused.
"""

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.integration.resources.fence import EXPIRATION, FenceServer, Message
from tests.integration.resources.journal import Journal

ROOT: Final = Path(__file__).parents[3]
NAMES: Final = ("a", "b/1", "c", "d", "e", "f")
COUNT_MIN, COUNT_MAX = 2, 4
"""How many processes may run, of which one at most is frozen."""

WEIGHTS: Final = {"join": 4, "leave": 4, "kill": 4, "freeze": 3, "nap": 2}
"""How often each event is drawn, relative to the others. A *freeze* lasts until others hold all
that the process held; it wakes up from a *nap* while they are about to take it, or before."""

FREEZE_S: Final = EXPIRATION.total_seconds() + 3
NAP_MIN_S: Final = EXPIRATION.total_seconds() * 0.9

UNSETTLED_FRACTION: Final = 0.3
"""The part of the events that come while the group still reacts to the one before."""

FRESH_S: Final = 0.4
"""A name is held if its newest message is not older, and its sender runs."""

LOCK_S: Final = 0.5
"""A transaction is shorter, unless its process is frozen."""

MOMENT_S: Final = 0.05
TIMEOUT_S: Final = 60.0
START_TIMEOUT_S: Final = 30.0


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

    journal: Journal = field(default_factory=Journal)


class Storm:
    """A group with one store and one server."""

    def __init__(self, place: Path, store: str, rng: Random) -> None:
        """Start nothing yet. *store* is an SQLite file, or a container and a connection string."""
        self._store = store
        self.place = place
        self._rng = rng
        self.is_on_blobs = " " in store
        self.processes: list[Process] = []
        self.events: Counter[str] = Counter()
        self.fence = FenceServer()
        self.settled_s: list[float] = []
        """When the group had done all that it had to do."""

    def play(self, count: int) -> None:
        """Let so many events happen, and stop every process in order."""
        with self.fence:
            try:
                for _ in range(COUNT_MIN + 1):
                    self.join()
                self._settle()
                for number in range(count):
                    if number == 0:
                        self._freeze(self.processes[0])
                    else:
                        self._next()
                    if self._rng.random() > UNSETTLED_FRACTION:
                        self._settle()
                    time.sleep(self._rng.uniform(0, 0.6))
                self._settle()
                self._end()
            finally:
                for process in self.processes:
                    if process.popen.poll() is None:
                        process.popen.kill()
                    process.popen.communicate()
                    process.journal = Journal.read(self._journal(process.owner_id))

    def _next(self) -> None:
        """Draw an event, and do it."""
        ready = self._ready()
        kinds = [
            kind
            for kind in WEIGHTS
            if (len(ready) < COUNT_MAX if kind == "join" else len(ready) > COUNT_MIN)
        ]
        (kind,) = self._rng.choices(kinds, [WEIGHTS[kind] for kind in kinds])
        if kind == "join":
            self.join()
            self.events[kind] += 1
            return
        process = self._rng.choice(ready)
        match kind:
            case "leave":
                process.terminated_s = time.monotonic()
                process.popen.terminate()
            case "kill":
                process.killed_s = time.monotonic()
                process.popen.kill()
            case "nap":
                self._suspend(process, self._rng.uniform(NAP_MIN_S, FREEZE_S))
            case _:
                self._freeze(process)
                return
        self.events[kind] += 1

    def join(self) -> Process:
        """Start a process, and return when it is a member."""
        number = len(self.processes)
        kind = "async" if number % 2 else "blocking"
        owner_id = f"p{number}-{kind}"
        settings = {"kind": kind}
        with (self.place / "output").open("ab") as output:
            popen = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.integration.resources.worker"),
                    *(str(self.fence.port), self._store, owner_id, ",".join(NAMES)),
                    *(str(self._journal(owner_id)), json.dumps(settings)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=ROOT,
            )
        process = Process(owner_id, popen, time.monotonic())
        self.processes.append(process)
        assert popen.stdout is not None
        late = threading.Timer(START_TIMEOUT_S, popen.kill)
        late.start()
        try:
            assert popen.stdout.readline() == b"ready\n", f"{owner_id} did not start"
        finally:
            late.cancel()
        return process

    def _journal(self, owner_id: str) -> Path:
        return self.place / f"{owner_id}.jsonl"

    def _freeze(self, process: Process) -> None:
        """Suspend a process until others hold its names."""
        self._suspend(process, FREEZE_S + self._rng.uniform(0.0, 1.0))
        self.events["freeze"] += 1

    def _suspend(self, process: Process, seconds: float) -> None:
        """Suspend a process for so long; if that is a freeze, until it holds nothing more."""
        frozen_s = time.monotonic()
        process.popen.send_signal(signal.SIGSTOP)
        while self._is_locked():
            process.popen.send_signal(signal.SIGCONT)
            time.sleep(MOMENT_S)
            frozen_s = time.monotonic()
            process.popen.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        until_s = time.monotonic() + TIMEOUT_S
        while seconds >= FREEZE_S:
            if process.popen.pid not in {m.pid for m in self.fence.newest.values()}:
                break
            assert time.monotonic() < until_s, f"{process.owner_id} is frozen, but not replaced"
            time.sleep(MOMENT_S)
        process.frozen.append((frozen_s, time.monotonic()))
        process.popen.send_signal(signal.SIGCONT)

    def _is_locked(self) -> bool:
        """Whether a process was frozen inside a transaction of SQLite.

        Then no process can write until it wakes up (``docs/stores.md``), so no name could move.
        """
        if self.is_on_blobs:
            return False
        with closing(sqlite3.connect(self._store, timeout=LOCK_S, isolation_level=None)) as file:
            try:
                file.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
        return False

    def _ready(self) -> list[Process]:
        return [p for p in self.processes if p.terminated_s is None and p.killed_s is None]

    def _settle(self) -> None:
        """Wait until every name has a holder that runs, and every processor holds one."""
        until_s = time.monotonic() + TIMEOUT_S
        while not self._is_settled():
            assert time.monotonic() < until_s, f"not settled: {self.fence.newest}"
            time.sleep(MOMENT_S)
        self.settled_s.append(time.monotonic())

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

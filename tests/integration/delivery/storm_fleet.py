"""Processes of ``eventproc run`` that are killed, frozen and stopped, with their exits and
faults."""

import os
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from tests.integration.delivery.environment import Store, shifted
from tests.integration.delivery.fleet import JOURNAL, ROOT, Fleet
from tests.integration.delivery.hub import Hub
from tests.integration.delivery.storm_checks import Exit, Fault, Handled

EXPIRATION_S: Final = 6.0
INTERVAL_S: Final = 1.0
CHECKPOINT_S: Final = 0.5
SHUTDOWN_S: Final = 10.0


@dataclass(slots=True, kw_only=True)
class _Run:
    """One process, from its start to its end."""

    process: subprocess.Popen[bytes]
    output: Path
    begun_s: float
    terminated_s: float | None = None
    frozen_s: float | None = None


class StormFleet(Fleet):
    """Processes of the command, each with its output in a file; their exits are recorded."""

    def __init__(self, hub: Hub, place: Path, store: Store, pace_s: float):
        """Start no process yet."""
        super().__init__("", place, store.spec)
        self._hub = hub
        self._storage = store
        self._pace_s = pace_s
        self.runs: dict[str, _Run] = {}
        self.faults: list[Fault] = []
        self.exits: list[Exit] = []
        self.started: Counter[float] = Counter()
        (place / "output").mkdir()

    def start(self, owner_id: str, off_s: float = 0.0) -> None:
        """Start a process whose wall clock is off."""
        command, env = shifted(off_s)
        output = self._place / "output" / f"{sum(self.started.values()):03}-{owner_id}"
        self.started[off_s] += 1
        with output.open("wb") as file:
            process = self._spawn(command, env, owner_id, file)
        self.runs[owner_id] = _Run(process=process, output=output, begun_s=time.monotonic())

    def _spawn(
        self, command: list[str], env: dict[str, str], owner_id: str, output: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        given = {
            "EVENTPROC_OWNER_ID": owner_id,
            "STORM_JOURNAL": str(self._place / JOURNAL),
            "STORM_PACE_S": str(self._pace_s),
        }
        return subprocess.Popen(
            [
                *(*command, "run", "tests.integration.delivery.storm_handler:Handler"),
                *("--store", self._storage.spec, "--interval", f"{INTERVAL_S}s"),
                *("--expiration", f"{EXPIRATION_S}s", "--shutdown-timeout", f"{SHUTDOWN_S}s"),
                *("--checkpoint-events", "50", "--checkpoint-interval", f"{CHECKPOINT_S}s"),
                *("--stop-at-eof", "--log-format", "json"),
            ],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=os.environ | given | dict(self._hub.env) | dict(self._storage.env) | env,
        )

    def ready(self) -> list[str]:
        """Return the processes that run, are not frozen, and were not asked to stop."""
        return sorted(
            owner_id
            for owner_id, run in self.runs.items()
            if run.terminated_s is None and run.frozen_s is None and run.process.poll() is None
        )

    def age_s(self, owner_id: str) -> float:
        """Return how long ago a process was started."""
        return time.monotonic() - self.runs[owner_id].begun_s

    def kill(self, owner_id: str) -> None:
        """Kill a process."""
        run = self.runs.pop(owner_id)
        run.process.kill()
        run.process.communicate()
        self._note("kill", owner_id, time.monotonic())

    def freeze(self, owner_id: str) -> None:
        """Suspend a process."""
        run = self.runs[owner_id]
        run.process.send_signal(signal.SIGSTOP)
        run.frozen_s = time.monotonic()

    def thaw(self, owner_id: str) -> None:
        """Resume a process."""
        run = self.runs[owner_id]
        assert run.frozen_s is not None
        run.process.send_signal(signal.SIGCONT)
        self._note("freeze", owner_id, run.frozen_s)
        run.frozen_s = None

    def terminate(self, owner_id: str) -> None:
        """Send SIGTERM to a process."""
        run = self.runs[owner_id]
        run.terminated_s = time.monotonic()
        run.process.terminate()

    def end_outage(self, kind: str, begun_s: float) -> None:
        """Record an outage of the store or the hub, which affected all processes."""
        self._note(kind, "", begun_s)

    def reap(self) -> list[str]:
        """Record the exits of processes that have ended; return their owner ids."""
        ended = [o for o, run in self.runs.items() if run.process.poll() is not None]
        for owner_id in ended:
            run = self.runs.pop(owner_id)
            run.process.communicate()
            self.exits.append(
                Exit(
                    owner_id=owner_id,
                    code=run.process.returncode,
                    begun_s=run.begun_s,
                    terminated_s=run.terminated_s,
                    ended_s=time.monotonic(),
                    output=run.output.read_text(errors="replace"),
                )
            )
        return ended

    def end(self) -> None:
        """Kill all processes."""
        for run in self.runs.values():
            run.process.kill()
            run.process.communicate()

    def handled(self) -> list[Handled]:
        """Return the handled events, in the order of the journal."""
        return [
            Handled(
                owner_id=str(owner_id),
                partition_id=str(partition_id),
                number=int(str(number)),
                at_s=float(str(at_s)),
            )
            for owner_id, _, partition_id, number, at_s in self.journal()
        ]

    def outputs(self) -> dict[str, str]:
        """Return the output of each process."""
        return {
            path.name: path.read_text(errors="replace")
            for path in sorted((self._place / "output").iterdir())
        }

    def _note(self, kind: str, owner_id: str, begun_s: float) -> None:
        now_s = time.monotonic()
        self.faults.append(Fault(kind=kind, owner_id=owner_id, begun_s=begun_s, ended_s=now_s))

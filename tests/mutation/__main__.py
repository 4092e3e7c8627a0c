"""Take away one guard after another, and see that the tests notice: ``make mutants``.

    python -m tests.mutation                     # all of them, by the quickest test: minutes
    python -m tests.mutation --only etag         # those with this word in name or file
    python -m tests.mutation --simulation        # by the simulation, too

At the end the tables in ``docs/guarantees.md`` are written anew, from the last verdict on each.

Fails where a mutant survives, and where a guard stands no more where the table says.
"""

import argparse
import queue
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from eventproc.testing.azurite import Azurite
from tests.mutation import report
from tests.mutation.guard import ROOT, Guard
from tests.mutation.guards.everything import GUARDS, GUARDS_BY_PART
from tests.mutation.memory import Memory
from tests.mutation.workshop import Verdict, Workshop


class Trial:
    """All mutants, tried by a few workers."""

    def __init__(self, guards: Sequence[Guard], arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._total = len(guards)
        self._memory = Memory()
        self._waiting: queue.SimpleQueue[Guard] = queue.SimpleQueue()
        for guard in guards:
            self._waiting.put(guard)
        self._telling = threading.Lock()
        self.verdicts: list[Verdict] = []
        self.errors: list[str] = []

    def run(self) -> None:
        """Try all of them."""
        with tempfile.TemporaryDirectory() as scratch, Azurite() as azurite:
            workers = [
                threading.Thread(
                    target=self._work,
                    args=(Path(scratch) / f"copy-{number}", azurite.connection_string),
                )
                for number in range(self._arguments.jobs)
            ]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

    def _work(self, directory: Path, storage: str) -> None:
        workshop = Workshop(directory, storage=storage)
        while True:
            try:
                guard = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                verdict = workshop.judge(
                    guard,
                    seeds=self._arguments.seeds,
                    simulates_all=self._arguments.simulation,
                    suspect=self._memory.suspect(guard),
                )
            except Exception as error:  # noqa: BLE001 - the others are tried all the same
                self._tell(f"UNTRIED  {guard.name}: {error}", error=guard.name)
            else:
                self._note(verdict)

    def _note(self, verdict: Verdict) -> None:
        with self._telling:
            self.verdicts.append(verdict)
            self._memory.keep(verdict)
        by = (verdict.killer or "").split("::")[-1]
        seeds = "" if verdict.seed_count is None else f"seeds {verdict.seed_count}"
        if verdict.is_killed:
            what, error = "killed  ", None
        else:
            what, error = "SURVIVED", verdict.guard.name
        found = ", ".join(part for part in (by, seeds) if part)
        line = f"{what} {verdict.seconds:5.1f} s  {verdict.guard.name}  <- {found or 'nothing'}"
        self._tell(line, error=error)

    def _tell(self, line: str, *, error: str | None) -> None:
        with self._telling:
            if error is not None:
                self.errors.append(error)
            done = self._total - self._waiting.qsize()
            print(f"[{done:3}/{self._total}] {line}", flush=True)


def main() -> int:
    """Return 0 if every mutant was killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--only", default="", help="guards with this word in their name or file")
    parser.add_argument("--seeds", type=int, default=1000, help="for the simulation (1000)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at a time (2)")
    parser.add_argument("--simulation", action="store_true", help="try it on every mutant")
    parser.add_argument("--resume", action="store_true", help="leave out what was judged before")
    arguments = parser.parse_args()
    chosen = [g for g in GUARDS if arguments.only in f"{g.name} {g.file}"]
    if arguments.resume:
        memory = Memory()
        chosen = [g for g in chosen if not memory.is_judged(g, simulated=arguments.simulation)]
    trial = Trial(chosen, arguments)
    trial.run()
    print(f"{len(trial.verdicts) - len(trial.errors)} of {len(chosen)} guards are watched")
    for name in trial.errors:
        print(f"not watched: {name}", file=sys.stderr)
    report.write(report.PAGE, report.table(GUARDS_BY_PART, Memory().verdicts(GUARDS)))
    print(f"written: {report.PAGE.relative_to(ROOT)}")
    return 1 if trial.errors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())

"""Remove one guard after another, and check that a test fails: ``make mutants``.

    python -m tests.mutation                     # all of them, by the tests that belong to them
    python -m tests.mutation --only ETag         # those with this word in name or file
    python -m tests.mutation --resume            # those without a verdict, or changed since
    python -m tests.mutation --simulation        # then by the simulation as well: an hour
    python -m tests.mutation --simulation --no-tests --suite small --seeds 200
    python -m tests.mutation --table             # only write the report again

Verdicts are kept in ``.tools/mutants/verdicts.json``, each as soon as it is known. At the end
``.tools/mutants/report.md`` is written from the last verdict on each guard.
The simulation runs in rounds of more and more seeds, so that most mutants have a verdict early.

Exits with 1 if a mutant survives, or if a guard does not occur in its file exactly once.
"""

import argparse
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from eventproc.testing.servers.azurite import Azurite
from tests.mutation import report
from tests.mutation.guard import ROOT, Guard
from tests.mutation.guards.everything import GUARDS, GUARDS_BY_PART
from tests.mutation.mutant_runner import MutantRunner
from tests.mutation.verdict import ByTests, ByWorlds
from tests.mutation.verdict_file import VerdictFile
from tests.simulation.suites import SUITES

ROUNDS: Final = (4, 20, 60, 200)
"""The number of seeds up to which each round goes."""


class MutationRun:
    """Tries all mutants with a few workers: by tests first, then by more and more seeds."""

    def __init__(self, guards: Sequence[Guard], arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._verdicts = VerdictFile()
        self._commit = _commit()
        self._errors: list[str] = []
        self._verdicts_lock = threading.Lock()
        # Each guard is tried by tests (seeds is 0), or by simulation up to that many seeds.
        self._queue: queue.SimpleQueue[tuple[Guard, int]] = queue.SimpleQueue()
        rounds = [0] if arguments.tests else []
        if arguments.simulation:
            rounds += [seeds for seeds in ROUNDS if seeds < arguments.seeds] + [arguments.seeds]
        last = [guard for guard in guards if guard.file.startswith("spark_integration")]
        quick = [guard for guard in guards if guard not in last]
        for seeds in rounds:
            for guard in quick:
                if not seeds or guard.is_simulated:
                    self._queue.put((guard, seeds))
        for guard in last if arguments.tests else ():
            self._queue.put((guard, 0))  # Last, because Spark streams are slow.

    def run(self) -> int:
        """Try all mutants; return how many could not be tried because of an error."""
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
        return len(self._errors)

    def _work(self, directory: Path, storage: str) -> None:
        suite = self._arguments.suite
        with MutantRunner(directory, storage=storage, suite=suite) as runner:
            while True:
                try:
                    guard, seeds = self._queue.get_nowait()
                except queue.Empty:
                    return
                try:
                    self._try(runner, guard, seeds)
                except Exception as error:  # noqa: BLE001 - the others are still tried
                    self._errors.append(guard.name)
                    self._print(f"UNTRIED {guard.name}: {error!r}")

    def _try(self, runner: MutantRunner, guard: Guard, seeds: int) -> None:
        known = self._verdicts.verdict(guard)
        started_s = time.monotonic()
        result: ByTests | ByWorlds | None = None
        if not seeds:
            if not (self._arguments.resume and known.tests and not known.tests.trouble):
                result = runner.test(guard, self._verdicts.last_killer(guard))
        elif known.worlds is None or (seeds == ROUNDS[0] and not self._arguments.resume):
            result = self._play_first(runner, guard, known.worlds, seeds)
        elif not known.worlds.is_killed and known.worlds.seeds_tried < seeds:
            result = runner.play(guard, known.worlds, seeds)
        if result is not None:
            with self._verdicts_lock:
                self._verdicts.store(guard, result, self._commit)
            self._print(f"{time.monotonic() - started_s:6.1f} s  {guard.name}: {result}")

    @staticmethod
    def _play_first(
        runner: MutantRunner, guard: Guard, known: ByWorlds | None, seeds: int
    ) -> ByWorlds:
        """Run the world that failed last time; if it passes now, run the seeds from 0 on."""
        result = None
        if known is not None and known.suite is not None and known.seed is not None:
            result = runner.play_again(guard, known.suite, known.seed)
        return result or runner.play(guard, ByWorlds(seeds_tried=0), seeds)

    def _print(self, line: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} [{self._queue.qsize():3} left] {line}", flush=True)


def _commit() -> str:
    """Return the last commit of the product, with a ``+`` if it was changed since then."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    product = ("eventproc", "checkpointstores", "spark_integration")
    is_changed = git("status", "--porcelain", *product)
    return git("log", "-1", "--format=%h", "--", *product) + ("+" if is_changed else "")


def main() -> int:
    """Return 0 if every mutant was killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--only", default="", help="guards with this word in their name or file")
    parser.add_argument("--seeds", type=int, default=1000, help="for the simulation (1000)")
    parser.add_argument("--suite", choices=SUITES, help="the only suite that is played")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at a time (2)")
    parser.add_argument("--simulation", action="store_true", help="then by the simulation as well")
    parser.add_argument("--no-tests", dest="tests", action="store_false", help="simulation only")
    parser.add_argument(
        "--resume", action="store_true", help="leave out guards that have a verdict"
    )
    parser.add_argument("--table", action="store_true", help="only write the report")
    arguments = parser.parse_args()
    chosen = [g for g in GUARDS if arguments.only in f"{g.name} {g.file}"]
    untried_count = 0 if arguments.table else MutationRun(chosen, arguments).run()
    verdicts = VerdictFile()
    noticed = [guard for guard in chosen if verdicts.verdict(guard).is_killed]
    print(f"{len(noticed)} of {len(chosen)} guards are noticed when they are removed")
    for guard in chosen:
        if guard not in noticed:
            print(f"not noticed: {guard.name}", file=sys.stderr)
    report.write(report.table(GUARDS_BY_PART, verdicts))
    print(f"written: {report.FILE.relative_to(ROOT)}")
    return 1 if untried_count or len(noticed) < len(chosen) or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())

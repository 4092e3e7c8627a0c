"""Take away one guard after another, and see that the tests notice: ``make mutants``.

    python -m tests.mutation                     # all of them, by the tests that they name
    python -m tests.mutation --only etag         # those with this word in name or file
    python -m tests.mutation --simulation        # then by the simulation, too: an hour
    python -m tests.mutation --table             # nothing but the tables, from what is known

At the end the tables in ``docs/guarantees.md`` are written anew, from the last verdict on each.
The simulation goes in rounds of more and more seeds, so that an early end leaves few open.

Fails where a mutant survives, and where a guard stands no more where the table says.
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

from eventproc.testing.azurite import Azurite
from tests.mutation import report
from tests.mutation.guard import ROOT, Guard
from tests.mutation.guards.everything import GUARDS, GUARDS_BY_PART
from tests.mutation.memory import Memory
from tests.mutation.verdict import ByTests, ByWorlds
from tests.mutation.workshop import Workshop

ROUNDS: Final = (4, 20, 60, 200)
"""Up to which seed each round goes."""


class Trial:
    """All mutants, tried by a few workers: first by tests, then by more and more worlds."""

    def __init__(self, guards: Sequence[Guard], arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._memory = Memory()
        self._commit = _commit()
        self._errors: list[str] = []
        self._keeping = threading.Lock()
        # Each is to be tried by tests (0), or by worlds up to a seed.
        self._waiting: queue.SimpleQueue[tuple[Guard, int]] = queue.SimpleQueue()
        rounds = [0] if arguments.tests else []
        if arguments.simulation:
            rounds += [seeds for seeds in ROUNDS if seeds < arguments.seeds] + [arguments.seeds]
        last = [guard for guard in guards if guard.file.startswith("spark_integration")]
        quick = [guard for guard in guards if guard not in last]
        for seeds in rounds:
            for guard in quick:
                if not seeds or guard.is_simulated:
                    self._waiting.put((guard, seeds))
        for guard in last if arguments.tests else ():
            self._waiting.put((guard, 0))  # Streams take their time.

    def run(self) -> int:
        """Try all of them; return how many could not be tried."""
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
        with Workshop(directory, storage=storage) as workshop:
            while True:
                try:
                    guard, seeds = self._waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    self._judge(workshop, guard, seeds)
                except Exception as error:  # noqa: BLE001 - the others are tried all the same
                    self._errors.append(guard.name)
                    self._tell(f"UNTRIED {guard.name}: {error!r}")

    def _judge(self, workshop: Workshop, guard: Guard, seeds: int) -> None:
        known = self._memory.verdict(guard)
        begun_s = time.monotonic()
        said: ByTests | ByWorlds | None = None
        if not seeds:
            if not (self._arguments.resume and known.tests and not known.tests.trouble):
                said = workshop.test(guard, self._memory.suspect(guard))
        elif known.worlds is None or (seeds == ROUNDS[0] and not self._arguments.resume):
            said = self._play_first(workshop, guard, known.worlds, seeds)
        elif not known.worlds.is_killed and known.worlds.seeds_tried < seeds:
            said = workshop.play(guard, known.worlds, seeds)
        if said is not None:
            with self._keeping:
                self._memory.keep(guard, said, self._commit)
            self._tell(f"{time.monotonic() - begun_s:6.1f} s  {guard.name}: {said}")

    @staticmethod
    def _play_first(
        workshop: Workshop, guard: Guard, known: ByWorlds | None, seeds: int
    ) -> ByWorlds:
        """The world that noticed the last time, and if it does no more, from the beginning."""
        said = None
        if known is not None and known.suite is not None and known.seed is not None:
            said = workshop.play_again(guard, known.suite, known.seed)
        return said or workshop.play(guard, ByWorlds(seeds_tried=0), seeds)

    def _tell(self, line: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} [{self._waiting.qsize():3} left] {line}", flush=True)


def _commit() -> str:
    """The commit that made the product what is judged."""

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
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at a time (2)")
    parser.add_argument("--simulation", action="store_true", help="try it on every mutant")
    parser.add_argument("--no-tests", dest="tests", action="store_false", help="simulation only")
    parser.add_argument("--resume", action="store_true", help="leave out what was judged before")
    parser.add_argument("--table", action="store_true", help="only write the tables")
    arguments = parser.parse_args()
    chosen = [g for g in GUARDS if arguments.only in f"{g.name} {g.file}"]
    untried_count = 0 if arguments.table else Trial(chosen, arguments).run()
    memory = Memory()
    watched = [guard for guard in chosen if memory.verdict(guard).is_killed]
    print(f"{len(watched)} of {len(chosen)} guards are watched")
    for guard in chosen:
        if guard not in watched:
            print(f"not watched: {guard.name}", file=sys.stderr)
    report.write(report.PAGE, report.table(GUARDS_BY_PART, memory))
    print(f"written: {report.PAGE.relative_to(ROOT)}")
    return 1 if untried_count or len(watched) < len(chosen) or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())

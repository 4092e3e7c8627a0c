"""Draw mistakes by seed, make each in a copy of the project, and see which the tests notice.

    python -m tests.mistakes                          # 30 of each area
    python -m tests.mistakes --area stores --count 100 --seed 7
    python -m tests.mistakes --table                  # the verdicts so far

Each mistake is tried by the tests that touch its module, the nearest first, for a minute of CPU
time at most, so that verdicts are the same beside other work.
Verdicts are kept in ``.tools/mistakes/<area>-<seed>.jsonl``; a mistake that has one is not tried
again. Those that nobody noticed are printed at the end, to be judged one by one: some of them
change nothing that a user could notice.
"""

import argparse
import json
import math
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from eventproc.testing._azurite import Azurite
from tests.mistakes.importers import Importers
from tests.mistakes.mistake import Mistake, draw

ROOT: Final = Path(__file__).parents[2]
KEPT_IN: Final = ROOT / ".tools" / "mistakes"
COPIED: Final = ("docs", "pyproject.toml", "conftest.py", "README.md", "tests")
PRODUCT: Final = ("eventproc", "checkpointstores", "spark_integration")
LINKED: Final = (".tools", "azurite", "benchmarks", "examples", "deploy", "dashboards")

AREAS: Final[Mapping[str, Sequence[str]]] = {
    "core": ("eventproc/_core",),
    "ownership": ("eventproc/_group",),
    "partition": ("eventproc/_delivery",),
    "runtime": ("eventproc/_runtime", "eventproc/telemetry"),
    "stores": ("checkpointstores",),
    "sources": ("eventproc/sources", "eventproc/columns", "eventproc/dead_letters"),
    "command": ("eventproc/_command",),
    "spark": ("spark_integration",),
    "emulator": ("eventproc/emulator",),
}

HANGS_S: Final = 40
"""A test that takes longer failed, and its process ends: an interrupt might hang, too. It is less
than the CPU time of a mistake, or else a test that never ends would count as one that noticed
nothing."""

FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
"""The line of pytest's summary that names a test, whose parameters may have spaces, and its error.
"""


class Budget:
    """How long the tests of one mistake may take: CPU time, and real time for those that wait."""

    def __init__(self, cpu_s: float) -> None:
        self._cpu_left_s = cpu_s
        self._ends_s = time.monotonic() + 30 * cpu_s

    def run(self, command: Sequence[str], directory: Path, env: Mapping[str, str]) -> str | None:
        """Return the output of tests that failed; ``None`` if they passed or took too long."""
        wait_s = self._ends_s - time.monotonic()
        if self._cpu_left_s < 1 or wait_s <= 0:
            return None
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                ["prlimit", f"--cpu={math.ceil(self._cpu_left_s)}", *command],
                cwd=directory,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            timer = threading.Timer(wait_s, os.killpg, (process.pid, signal.SIGKILL))
            timer.start()
            _, status, used = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            self._cpu_left_s -= used.ru_utime + used.ru_stime
            if process.returncode <= 0 or process.returncode == 5:  # 5: no test was selected
                return None
            output.seek(0)
            return output.read().decode(errors="replace")


class Copy:
    """A copy of the project, in which one mistake is made at a time."""

    def __init__(self, directory: Path, *, storage: str, limit_s: float) -> None:
        self._directory = directory
        self._limit_s = limit_s
        self._is_sound: dict[str, bool] = {}
        self._modified_s = 1_000_000_000
        directory.mkdir()
        for part in (*PRODUCT, *COPIED):
            if (ROOT / part).is_dir():
                unwanted = shutil.ignore_patterns("__pycache__", "node_modules")
                shutil.copytree(ROOT / part, directory / part, ignore=unwanted)
            else:
                shutil.copy2(ROOT / part, directory / part)
        for part in LINKED:
            if (ROOT / part).exists():
                (directory / part).symlink_to(ROOT / part)
        self._environment = {
            **os.environ,
            "EVENTPROC_TEST_STORAGE": storage,
            "PYTHONPATH": str(directory),
        }
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)  # collecting takes seconds without

    def noticed_by(self, mistake: Mistake, tests: Sequence[Path]) -> str | None:
        """Return the name of a test that fails with *mistake* and passes without it."""
        file = self._directory / mistake.file
        original = file.read_bytes()
        budget = Budget(self._limit_s)
        unsound: list[str] = []
        while True:
            self._write(file, mistake.applied_to(original))
            try:
                failed = self._failure(tests, budget, unsound)
            finally:
                self._write(file, original)
            if failed is None:
                return None
            if failed not in self._is_sound:
                found = self._first_failure([failed], Budget(self._limit_s))
                self._is_sound[failed] = found is None
            if self._is_sound[failed]:
                return failed
            unsound.append(failed)

    def _write(self, file: Path, source: bytes) -> None:
        """Write *source* with a time of its own: bytecode is kept by the second and the size."""
        file.write_bytes(source)
        self._modified_s += 1
        os.utime(file, (self._modified_s, self._modified_s))

    def _failure(
        self, tests: Sequence[Path], budget: Budget, left_out: Sequence[str]
    ) -> str | None:
        """Run tests until one fails: few files first, because pytest collects all that it gets."""
        names = [str(path) for path in tests]
        size = 3
        while names:
            some, names = names[:size], names[size:]
            failed = self._first_failure(some, budget, left_out)
            if failed is not None:
                return failed
            size *= 3
        return None

    def _first_failure(
        self, tests: Sequence[str], budget: Budget, left_out: Sequence[str] = ()
    ) -> str | None:
        command = [
            *(sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"),
            *("-m", "not long", f"--timeout={HANGS_S}", "--timeout-method=thread"),
            *(f"--deselect={name}" for name in left_out),
        ]
        output = budget.run([*command, *tests], self._directory, self._environment)
        if output is None:
            return None
        found = FAILED.search(output)
        return found.group(1) if found else tests[0]  # nothing ran: nothing could be imported


class Drawing:
    """The mistakes of one call, and their verdicts."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._lock = threading.Lock()
        self._importers = Importers(ROOT)
        self._queue: queue.SimpleQueue[tuple[str, Mistake]] = queue.SimpleQueue()
        KEPT_IN.mkdir(parents=True, exist_ok=True)
        for area in arguments.area or AREAS:
            known = {entry["mistake"] for entry in self.verdicts(area)}
            for mistake in drawn(area, arguments):
                if str(mistake) not in known:
                    self._queue.put((area, mistake))

    def verdicts(self, area: str) -> list[dict[str, str | None]]:
        """Return what is known of the mistakes of an area."""
        file = self._file(area)
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def _file(self, area: str) -> Path:
        return KEPT_IN / f"{area}-{self._arguments.seed}.jsonl"

    def run(self) -> None:
        """Try every mistake that has no verdict."""
        with tempfile.TemporaryDirectory() as scratch, Azurite() as azurite:
            workers = [
                threading.Thread(
                    target=self._work, args=(Path(scratch, str(n)), azurite.connection_string)
                )
                for n in range(self._arguments.jobs)
            ]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

    def _work(self, directory: Path, storage: str) -> None:
        copy = Copy(directory, storage=storage, limit_s=self._arguments.limit)
        while True:
            try:
                area, mistake = self._queue.get_nowait()
            except queue.Empty:
                return
            started_s = time.monotonic()
            test = copy.noticed_by(mistake, self._importers.tests_of(Path(mistake.file)))
            entry = {"mistake": str(mistake), "noticed_by": test, **asdict(mistake)}
            took_s = time.monotonic() - started_s
            with self._lock, self._file(area).open("a") as file:
                file.write(json.dumps(entry) + "\n")
                left = self._queue.qsize()
                print(f"[{left:3} left] {took_s:5.1f} s  {mistake}: {test or 'NOT NOTICED'}")

    def table(self) -> str:
        """Return the share that was noticed, by area, and the mistakes that were not."""
        rows, unnoticed = [], []
        for area in self._arguments.area or AREAS:
            entries = self.verdicts(area)
            counts = Counter(entry["noticed_by"] is not None for entry in entries)
            if entries:
                share = counts[True] / len(entries)
                rows.append(f"{area:12} {counts[True]:4} of {len(entries):4}  {share:4.0%}")
            unnoticed += [entry["mistake"] for entry in entries if entry["noticed_by"] is None]
        return "\n".join([*rows, "", "not noticed:", *map(str, sorted(map(str, unnoticed)))])


def drawn(area: str, arguments: argparse.Namespace) -> Sequence[Mistake]:
    """Return the mistakes of an area that belong to the seed."""
    files = [
        file.relative_to(ROOT) for folder in AREAS[area] for file in (ROOT / folder).rglob("*.py")
    ]
    return list(draw(ROOT, files, count=arguments.count, seed=f"{arguments.seed}"))


def main() -> None:
    """Draw, try, and print the verdicts."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mistakes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--area", action="append", choices=AREAS, help="may be repeated (all)")
    parser.add_argument("--count", type=int, default=30, help="mistakes in each area (30)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--jobs", type=int, default=2, help="mistakes tried at a time (2)")
    parser.add_argument("--limit", type=float, default=60, help="CPU seconds for each (60)")
    parser.add_argument("--table", action="store_true", help="only print the verdicts so far")
    arguments = parser.parse_args()
    drawing = Drawing(arguments)
    if not arguments.table:
        drawing.run()
    print(drawing.table())


if __name__ == "__main__":
    main()

"""Where mutants are made and tried: in copies of the project, never in the project itself."""

import compileall
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutation.first_failure import VERDICT_VARIABLE
from tests.mutation.guard import ROOT, Guard

PARTS: Final = (
    *("eventproc", "checkpointstores", "spark_integration", "tests", "docs"),
    *("pyproject.toml", "conftest.py", "README.md"),
)
"""What a mutant needs of the project."""

KILLED, SURVIVED = 1, 0
"""The exit codes of pytest that say something; any other one means that nothing was tried."""

TEST_TIMEOUT_S: Final = 60
"""A mutant may hang; that is seen, too."""


class UntriedError(Exception):
    """The tests could not be run on a mutant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one mutant."""

    guard: Guard
    killer: str | None
    """The quick test that failed first; ``None`` where none of them did."""

    seed_count: int | None
    """After how many seeds the simulation failed; ``None`` where it did not, or was not asked."""

    seeds_tried: int
    """How many seeds that was, or at most; 0 where the simulation was not asked."""

    seconds: float

    @property
    def is_killed(self) -> bool:
        """Whether any test noticed."""
        return self.killer is not None or self.seed_count is not None


class Workshop:
    """One copy of the project, in which one mutant after another is tried."""

    def __init__(self, directory: Path, *, storage: str) -> None:
        """Copy the project into a new *directory*; *storage* is a real one, for the contract."""
        self._root = directory
        self._environment = {
            **os.environ,
            "EVENTPROC_TEST_STORAGE": storage,
            "PYTHONPATH": str(directory),
            "PYTHONDONTWRITEBYTECODE": "1",
            VERDICT_VARIABLE: str(directory / "verdict.txt"),
        }
        directory.mkdir()
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(
                    source,
                    directory / part,
                    ignore=shutil.ignore_patterns("__pycache__", "node_modules"),
                )
            else:
                shutil.copy2(source, directory / part)
        # What is not mutated is compiled once; a mutant's bytecode is never kept.
        compileall.compile_dir(directory, quiet=1)

    def judge(
        self, guard: Guard, *, seeds: int, simulates_all: bool, suspect: str | None
    ) -> Verdict:
        """Try a mutant: the quick tests first, then the simulation where that can see it.

        Args:
            guard: What to take away.
            seeds: For how long the simulation is tried.
            simulates_all: Try the simulation even where a quick test noticed.
            suspect: The test that noticed the last time, which is tried first.
        """
        begun_s = time.monotonic()
        file = self._root / guard.file
        before = file.stat()
        text = file.read_text()
        file.write_text(guard.applied_to(text))
        try:
            killer = self._quick_killer(guard, suspect)
            seed_count, seeds_tried = None, 0
            if guard.is_simulated and (simulates_all or killer is None):
                seeds_tried = seeds
                seed_count = self._seeds_until_failure(seeds)
        finally:
            file.write_text(text)
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        return Verdict(
            guard=guard,
            killer=killer,
            seed_count=seed_count,
            seeds_tried=seeds_tried,
            seconds=time.monotonic() - begun_s,
        )

    def _quick_killer(self, guard: Guard, suspect: str | None) -> str | None:
        killer: str | None = None
        if suspect is not None:
            with suppress(UntriedError):  # It may have another name by now.
                killer = self._first_failure(["--hypothesis-seed=0", suspect])
        if killer is None:
            killer = self._first_failure(["--hypothesis-seed=0", *guard.killers])
        return killer

    def _seeds_until_failure(self, seeds: int) -> int | None:
        if not seeds:
            return None
        done = self._run("tests.mutation.worlds", str(seeds))
        if done.returncode:
            raise UntriedError(
                f"the simulation ended with {done.returncode}:\n{done.stderr[-2000:]}"
            )
        return int(done.stdout) if done.stdout.strip() else None

    def _first_failure(self, arguments: Sequence[str]) -> str | None:
        """Run tests until one fails; return that one."""
        verdict = self._root / "verdict.txt"
        verdict.unlink(missing_ok=True)
        done = self._run(
            *("pytest", "-x", "-q", "-p", "tests.mutation.first_failure"),
            *("--tb=line", "--timeout", str(TEST_TIMEOUT_S), *arguments),
        )
        if done.returncode == KILLED and verdict.exists():
            return verdict.read_text()
        if done.returncode != SURVIVED:
            raise UntriedError(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}")
        return None

    def _run(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self._root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

"""Makes and tests mutants in copies of the project, never in the project itself."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.mutation.guard import ROOT, Guard
from tests.mutation.listener import VERDICT_VARIABLE
from tests.mutation.verdict import ByTests, ByWorlds

PARTS: Final = (
    *("eventproc", "checkpointstores", "spark_integration", "tests", "docs"),
    *("pyproject.toml", "conftest.py", "README.md"),
)
"""The files of the project that a copy needs."""

PASSED = 0
"""Exit code of pytest. With any other one the listener must have written a result."""

TEST_WITHIN_S: Final = 60
TESTS_WITHIN_S: Final = 900
WORLDS_WITHIN_S: Final = 7200.0
HANGS_MAX: Final = 5
"""Give up on a guard after this many worlds that never end."""

_mutant_count = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestResult:
    """What the listener wrote about one run of pytest."""

    killer: str = ""
    error: str = ""
    is_timing: bool = False
    """Whether the test timed out, or failed in its setup."""

    troubles: tuple[str, ...] = ()


class MutantRunner:
    """One copy of the project, in which mutants are tested one after the other."""

    def __init__(self, directory: Path, *, storage: str, suite: str | None = None) -> None:
        """Copy the project into a new *directory*.

        *storage* is a connection string for tests; with *suite*, only that one is played.
        """
        self._root = directory
        self._suite = suite
        self._verdict = directory / "verdict.json"
        self._output = directory / "output.txt"
        self._sound_by_test: dict[str, bool] = {}
        self._sound_by_world: dict[tuple[str, int], bool] = {}
        directory.mkdir()
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                unwanted = shutil.ignore_patterns("node_modules")
                shutil.copytree(source, directory / part, ignore=unwanted)
            else:
                shutil.copy2(source, directory / part)
        if (ROOT / ".tools").exists():
            (directory / ".tools").symlink_to(ROOT / ".tools")  # has Java
        environment = {
            **os.environ,
            "EVENTPROC_TEST_STORAGE": storage,
            "PYTHONPATH": str(directory),
            "PYTHONDONTWRITEBYTECODE": "1",  # or stale bytecode of another mutant could run
            VERDICT_VARIABLE: str(self._verdict),
        }
        self._fork_server = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation.fork_server"],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the fork server."""
        self._fork_server.communicate()

    def test(self, guard: Guard, last_killer: str | None) -> ByTests:
        """Run the test that failed the last time, then the tests that the guard names."""
        result = ByTests()
        for tests in ([last_killer] if last_killer else [], guard.killers):
            if tests:
                result = self._test(guard, tests)
            if result.killer is not None:
                break
        return result

    def _test(self, guard: Guard, tests: Sequence[str]) -> ByTests:
        unsound: list[str] = []
        while True:
            with self._mutant(guard):
                result = self._run_tests([*tests, *(f"--deselect={test}" for test in unsound)])
                killer = result.killer
                # A timing failure may come from a busy machine: run the test again.
                if killer and result.is_timing and self._run_tests([killer]).killer != killer:
                    return ByTests(trouble=f"{killer} fails only sometimes")
            if not killer:
                anyway = [f"{test} fails without the mutation" for test in unsound]
                return ByTests(trouble=", ".join([*result.troubles, *anyway]))
            if killer not in self._sound_by_test:
                self._sound_by_test[killer] = not self._run_tests([killer]).killer
            if self._sound_by_test[killer]:
                return ByTests(killer=killer, error=result.error)
            unsound.append(killer)

    def _run_tests(self, tests: Sequence[str]) -> PytestResult:
        """Run tests until one fails; return the listener's result."""
        self._verdict.unlink(missing_ok=True)
        options = [
            *("-q", "--tb=line", "-p", "tests.mutation.listener", "-p", "no:cacheprovider"),
            # The fork server has imported the plugins already.
            *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
        ]
        code = self._request(
            "tests",
            [*options, "--hypothesis-seed=0", f"--timeout={TEST_WITHIN_S}", *tests],
            TESTS_WITHIN_S,
        )
        answer = json.loads(self._verdict.read_text()) if self._verdict.exists() else {}
        troubles = [f"{test} hangs" for test in answer.pop("hangs", ())]
        if not answer and not troubles and code != PASSED:
            ended = "never ended" if code is None else f"ended with {code}"
            troubles = [f"pytest {ended}: {self._output.read_text()[-300:]}"]
        return PytestResult(**answer, troubles=tuple(troubles))

    def play(self, guard: Guard, result: ByWorlds, stop: int) -> ByWorlds:
        """Play worlds in every suite, from where the last trial ended up to a seed."""
        skipped: list[tuple[str, int]] = []
        hung: list[str] = [result.trouble] if result.trouble else []
        first = result.seeds_tried
        while True:
            with self._mutant(guard):
                request = {"first": first, "stop": stop, "skipped": skipped}
                code, answer = self._run_worlds(suites=self._suites(guard), **request)
            if not answer:
                return ByWorlds(seeds_tried=stop, trouble=", ".join(hung))
            world = (answer["suite"], answer["seed"])
            skipped.append(world)
            if code != 0 or "violation" not in answer:
                hung.append(f"{world[0]} {world[1]} ended with {code}")
                if len(hung) > HANGS_MAX:
                    return ByWorlds(seeds_tried=answer["seed"], trouble=", ".join(hung))
            elif self._is_sound(world):
                return ByWorlds(
                    seeds_tried=answer["seed"] + 1,
                    suite=world[0],
                    seed=world[1],
                    violation=" ".join(answer["violation"].split())[:200],
                )
            first = answer["seed"]

    def _suites(self, guard: Guard) -> Sequence[str]:
        """Return the small worlds, which are quick, and the guard's suites; empty: all suites."""
        if self._suite is not None:
            return (self._suite,)
        return ("small", *guard.suites) if guard.suites else ()

    def play_again(self, guard: Guard, suite: str, seed: int) -> ByWorlds | None:
        """Play the world that failed the last time; ``None`` if it does not fail."""
        request = {"first": seed, "stop": seed + 1, "suites": [suite], "skipped": []}
        with self._mutant(guard):
            code, answer = self._run_worlds(**request)
        if code != 0 or "violation" not in answer or not self._is_sound((suite, seed)):
            return None
        return ByWorlds(
            seeds_tried=seed + 1,
            suite=suite,
            seed=seed,
            violation=" ".join(answer["violation"].split())[:200],
        )

    def _is_sound(self, world: tuple[str, int]) -> bool:
        """Whether this world passes without a mutation."""
        if world not in self._sound_by_world:
            suite, seed = world
            _, answer = self._run_worlds(first=seed, stop=seed + 1, suites=[suite], skipped=[])
            self._sound_by_world[world] = not answer
        return self._sound_by_world[world]

    def _run_worlds(self, **request: Any) -> tuple[int | None, dict[str, Any]]:
        """Play worlds; return the exit code, and the failed world if there is one."""
        self._verdict.write_text("{}")
        code = self._request("worlds", [json.dumps(request), str(self._verdict)], WORLDS_WITHIN_S)
        answer = json.loads(self._verdict.read_text())
        if code != 0 and not answer:
            raise RuntimeError(f"no world could be played: {self._output.read_text()[-2000:]}")
        return code, answer

    def _request(self, runs: str, arguments: Sequence[str], within_s: float) -> int | None:
        assert self._fork_server.stdin is not None
        assert self._fork_server.stdout is not None
        request = {
            "runs": runs,
            "arguments": list(arguments),
            "within_s": within_s,
            "output": str(self._output),
        }
        self._fork_server.stdin.write(json.dumps(request) + "\n")
        self._fork_server.stdin.flush()
        code: int | None = json.loads(self._fork_server.stdout.readline())
        return code

    @contextmanager
    def _mutant(self, guard: Guard) -> Iterator[None]:
        """Remove a guard from the copy while the block runs."""
        file = self._root / guard.file
        text = file.read_text()
        before = file.stat()
        file.write_text(guard.applied_to(text))
        # Cached bytecode is matched by the source's mtime, so each mutant needs its own.
        made_at_s = int(time.time()) - 1_000_000 + next(_mutant_count)
        os.utime(file, (made_at_s, made_at_s))
        try:
            yield
        finally:
            file.write_text(text)
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

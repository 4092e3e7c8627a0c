"""The last verdict on each guard, in ``.tools/mutants``: the report is written from it.

It makes the next run faster: the test that failed last time is run first, and ``--resume`` leaves
out guards that have a verdict. Git ignores the folder, and ``make clean`` keeps it.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tests.mutation.guard import ROOT, Guard
from tests.mutation.verdict import ByTests, ByWorlds, Verdict

FILE: Final = ROOT / ".tools/mutants/verdicts.json"


class VerdictFile:
    """Verdicts by the names of their guards, in a JSON file.

    A verdict counts only for the mutant that was tried. If the guard changed since then, there is
    no verdict, but the test that failed is still the first one to run.
    """

    def __init__(self, file: Path = FILE) -> None:
        """Read the file, if it exists."""
        self._file = file
        self._known = self._read()

    def verdict(self, guard: Guard) -> Verdict:
        """Return the verdict on a guard as it is now, with ``None`` for what was not tried."""
        known = self._current(guard)
        return Verdict(
            tests=ByTests(**known["tests"]) if "tests" in known else None,
            worlds=ByWorlds(**known["worlds"]) if "worlds" in known else None,
        )

    def commits(self, guard: Guard) -> set[str]:
        """Return the commits at which the guard was tried."""
        known = self._current(guard)
        return {known[key] for key in ("tests_at", "worlds_at") if key in known}

    def last_killer(self, guard: Guard) -> str | None:
        """Return the test that failed last time, also if the guard changed since then."""
        killer: str | None = self._known.get(guard.name, {}).get("tests", {}).get("killer")
        return killer

    def store(self, guard: Guard, result: ByTests | ByWorlds, commit: str) -> None:
        """Add a result to the file, and keep what other runs wrote into it since it was read."""
        self._known = self._read()
        known = self._known.setdefault(guard.name, {})
        if known.get("digest") != guard.digest:
            known.clear()
            known["digest"] = guard.digest
        key = "tests" if isinstance(result, ByTests) else "worlds"
        known[key] = {
            name: value for name, value in asdict(result).items() if value not in (None, "")
        }
        known[f"{key}_at"] = commit
        self._file.parent.mkdir(parents=True, exist_ok=True)
        written = self._file.with_suffix(f".{os.getpid()}.new")
        written.write_text(json.dumps(self._known, indent=1, sort_keys=True) + "\n")
        written.replace(self._file)

    def _read(self) -> dict[str, dict[str, Any]]:
        known: dict[str, dict[str, Any]] = (
            json.loads(self._file.read_text()) if self._file.exists() else {}
        )
        return known

    def _current(self, guard: Guard) -> dict[str, Any]:
        known = self._known.get(guard.name, {})
        return known if known.get("digest") == guard.digest else {}

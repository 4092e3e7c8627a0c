"""The last verdict on each guard, beside the source: what the tables are made from.

It makes the next run quick, too: the test that noticed the last time is tried first.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tests.mutation.guard import Guard
from tests.mutation.verdict import ByTests, ByWorlds, Verdict

FILE: Final = Path(__file__).with_name("verdicts.json")


class Memory:
    """Verdicts by the names of their guards, in a file.

    A verdict on a guard that reads otherwise by now counts no more; its killer is a suspect still.
    """

    def __init__(self, file: Path = FILE) -> None:
        """Read what is there."""
        self._file = file
        self._known = self._read()

    def verdict(self, guard: Guard) -> Verdict:
        """What is known about a guard as it stands."""
        known = self._current(guard)
        return Verdict(
            tests=ByTests(**known["tests"]) if "tests" in known else None,
            worlds=ByWorlds(**known["worlds"]) if "worlds" in known else None,
        )

    def commits(self, guard: Guard) -> set[str]:
        """The commits at which it was judged."""
        known = self._current(guard)
        return {known[key] for key in ("tests_at", "worlds_at") if key in known}

    def suspect(self, guard: Guard) -> str | None:
        """The test that noticed the last time."""
        killer: str | None = self._known.get(guard.name, {}).get("tests", {}).get("killer")
        return killer

    def keep(self, guard: Guard, said: ByTests | ByWorlds, commit: str) -> None:
        """Write down what was said about a guard, beside what other runs may have written."""
        self._known = self._read()
        known = self._known.setdefault(guard.name, {})
        if known.get("digest") != guard.digest:
            known.clear()
            known["digest"] = guard.digest
        key = "tests" if isinstance(said, ByTests) else "worlds"
        known[key] = {
            name: value for name, value in asdict(said).items() if value not in (None, "")
        }
        known[f"{key}_at"] = commit
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

"""The last verdict on each guard: it makes the next run quicker, and the tables."""

import json
from collections.abc import Sequence
from typing import Any, Final

from tests.mutation.guard import ROOT, Guard
from tests.mutation.workshop import Verdict

FILE: Final = ROOT / ".tools/mutants.json"


class Memory:
    """Verdicts by the names of their guards, in a file."""

    def __init__(self) -> None:
        """Read what is there."""
        self._known: dict[str, dict[str, Any]] = (
            json.loads(FILE.read_text()) if FILE.exists() else {}
        )

    def suspect(self, guard: Guard) -> str | None:
        """The test that noticed the last time."""
        killer: str | None = self._known.get(guard.name, {}).get("killer")
        return killer

    def is_judged(self, guard: Guard, *, simulated: bool) -> bool:
        """Whether it was noticed, and the simulation was asked where that is wanted and can be."""
        known = self._known.get(guard.name)
        if known is None or (known["killer"] is None and known["seed_count"] is None):
            return False
        return not simulated or not guard.is_simulated or known["seeds_tried"] > 0

    def keep(self, verdict: Verdict) -> None:
        """Write one down; what the simulation said stays, where it was not asked again."""
        known = self._known.setdefault(verdict.guard.name, {"seed_count": None, "seeds_tried": 0})
        known["killer"] = verdict.killer
        if verdict.seeds_tried:
            known["seed_count"] = verdict.seed_count
            known["seeds_tried"] = verdict.seeds_tried
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(json.dumps(self._known, indent=1, sort_keys=True))

    def verdicts(self, guards: Sequence[Guard]) -> list[Verdict]:
        """The last one on each of these guards that has been judged."""
        return [
            Verdict(guard=guard, seconds=0.0, **self._known[guard.name])
            for guard in guards
            if guard.name in self._known
        ]

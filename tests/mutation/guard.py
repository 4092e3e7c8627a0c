"""A guard: a few words of the source without which a promise breaks; and the source without it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
"""The checkout."""


class GuardGoneError(Exception):
    """The source changed: the guard's words stand there no more, or more than once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One guard. Its mutant is the whole project with these words replaced."""

    name: str
    without_it: str
    """What breaks."""

    words: str
    """What stands in the file, exactly once."""

    mutated: str
    """What stands there in the mutant."""

    file: str = ""
    killers: tuple[str, ...] = ()
    """Tests that are quick and should fail, for pytest's command line."""

    is_simulated: bool = True
    """False where it is not in the simulated world: another store, a thread, Spark."""

    suites: tuple[str, ...] = ()
    """Suites of the simulation whose worlds could notice, the likeliest first; else all."""

    @property
    def digest(self) -> str:
        """What a verdict is about: it changes when another mutant is made."""
        made = f"{self.file}\0{self.words}\0{self.mutated}"
        return hashlib.sha256(made.encode()).hexdigest()[:12]

    def applied_to(self, text: str) -> str:
        """The file's text without the guard."""
        if text.count(self.words) != 1:
            raise GuardGoneError(
                f"{self.name}: its words stand {text.count(self.words)} times in {self.file}; "
                "if the source moved on, let the table of guards follow"
            )
        return text.replace(self.words, self.mutated)


def guards_in(
    file: str, killers: Sequence[str], *guards: Guard, suites: tuple[str, ...] = ()
) -> list[Guard]:
    """Guards of one file, which the same tests look after, and the same suites."""
    return [
        replace(
            guard,
            file=file,
            killers=(*guard.killers, *killers),
            suites=guard.suites or suites,
        )
        for guard in guards
    ]

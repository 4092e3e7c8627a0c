"""A guard: a piece of source that a guarantee depends on, and its replacement in the mutant."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
"""The checkout."""


class GuardGoneError(Exception):
    """The source changed: the words of a guard do not occur exactly once in its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One guard. Its mutant is the whole project with these words replaced."""

    name: str
    without_it: str
    """What breaks without the guard."""

    words: str
    """The guard's source, which must occur exactly once in the file."""

    mutated: str
    """Its replacement in the mutant."""

    file: str = ""
    killers: tuple[str, ...] = ()
    """Quick tests that should fail, as arguments of pytest."""

    is_simulated: bool = True
    """False if the simulation does not contain the source: another store, a thread, Spark."""

    suites: tuple[str, ...] = ()
    """Suites that could fail beside ``small``, the likeliest first; empty: all."""

    @property
    def digest(self) -> str:
        """A hash of the mutant; a verdict is void when it changes."""
        made = f"{self.file}\0{self.words}\0{self.mutated}"
        return hashlib.sha256(made.encode()).hexdigest()[:12]

    def applied_to(self, text: str) -> str:
        """Return the file's text with the guard replaced."""
        if text.count(self.words) != 1:
            raise GuardGoneError(
                f"{self.name}: its words occur {text.count(self.words)} times in {self.file}; "
                "if the source has changed, update the table of guards"
            )
        return text.replace(self.words, self.mutated)


def guards_in(
    file: str, killers: Sequence[str], *guards: Guard, suites: tuple[str, ...] = ()
) -> list[Guard]:
    """Return guards of one file that share their tests and suites."""
    return [
        replace(
            guard,
            file=file,
            killers=(*guard.killers, *killers),
            suites=guard.suites or suites,
        )
        for guard in guards
    ]

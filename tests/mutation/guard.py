"""A guard: a few words of the source without which a promise breaks; and the source without it."""

from collections.abc import Sequence
from dataclasses import dataclass
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
    """False where no simulation can see it: another store, a thread, equal views."""

    def applied_to(self, text: str) -> str:
        """The file's text without the guard."""
        if text.count(self.words) != 1:
            raise GuardGoneError(
                f"{self.name}: its words stand {text.count(self.words)} times in {self.file}; "
                "if the source moved on, let the table of guards follow"
            )
        return text.replace(self.words, self.mutated)


def guards_in(file: str, killers: Sequence[str], *guards: Guard) -> list[Guard]:
    """Guards of one file, which the same tests look after."""
    return [
        Guard(
            name=guard.name,
            without_it=guard.without_it,
            words=guard.words,
            mutated=guard.mutated,
            file=file,
            killers=(*guard.killers, *killers),
            is_simulated=guard.is_simulated,
        )
        for guard in guards
    ]

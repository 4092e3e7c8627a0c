"""What became of one mutant: by the tests that its guard names, and by the simulation.

Law: only a test that failed, or a promise that a world saw broken, kills. Whatever else ends a
trial - a time-out, a test that fails without the mutation, too - is trouble: it says nothing.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ByTests:
    """What the named tests said."""

    killer: str | None = None
    """The first of them that failed."""

    error: str = ""
    """What it said."""

    trouble: str = ""
    """Why nothing can be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByWorlds:
    """What the simulation said."""

    seeds_tried: int
    """Seeds from 0 on, each played in every suite."""

    suite: str | None = None
    """The suite that broke a promise, ..."""

    seed: int | None = None
    """... with this seed."""

    violation: str = ""
    """Which promise that was."""

    trouble: str = ""
    """Worlds that said nothing, for they never came to an end."""

    @property
    def is_killed(self) -> bool:
        """Whether a promise was broken."""
        return self.suite is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Both, as far as they were asked."""

    tests: ByTests | None = None
    worlds: ByWorlds | None = None

    @property
    def is_killed(self) -> bool:
        """Whether anything noticed."""
        by_tests = self.tests is not None and self.tests.killer is not None
        return by_tests or (self.worlds is not None and self.worlds.is_killed)

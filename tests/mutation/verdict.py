"""The result of one mutant: of the tests that its guard names, and of the simulation.

A mutant is killed only by a test that failed because of it, or by a simulated world in which an
invariant was violated. A time-out, or a test that fails without the mutation as well, is trouble:
it proves nothing.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ByTests:
    """The result of the tests that the guard names."""

    killer: str | None = None
    """Node id of the first test that failed."""

    error: str = ""
    """The error with which it failed."""

    trouble: str = ""
    """Why there is no result: a test hung, or fails without the mutation as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByWorlds:
    """The result of the simulation."""

    seeds_tried: int
    """How many seeds were simulated, from 0 on, each in every suite."""

    suite: str | None = None
    """The suite in which an invariant was violated, ..."""

    seed: int | None = None
    """... with this seed."""

    violation: str = ""
    """Which invariant that was."""

    trouble: str = ""
    """Worlds that did not end in time and therefore prove nothing."""

    @property
    def is_killed(self) -> bool:
        """Whether an invariant was violated."""
        return self.suite is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Both results; ``None`` for one that was not tried."""

    tests: ByTests | None = None
    worlds: ByWorlds | None = None

    @property
    def is_killed(self) -> bool:
        """Whether a test or a simulated world failed."""
        by_tests = self.tests is not None and self.tests.killer is not None
        return by_tests or (self.worlds is not None and self.worlds.is_killed)

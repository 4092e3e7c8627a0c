"""The benchmarks behind ``docs/scale.md`` run, and agree where both can simulate a group."""

import pytest

from benchmarks.rounds import measure as rounds_of
from benchmarks.scale import measure as played
from eventproc.models import LeaseMode


@pytest.mark.parametrize("size", ["4x2", "18x4"])
def test_rounds_and_the_full_simulation_agree(size):
    """A cold start and a new processor: the same, fewest moves, and no conflict."""
    _, lines = played(size, LeaseMode.PARTITION)
    outcomes = rounds_of(size)

    for line, outcome in zip(lines[:2], outcomes[:2], strict=True):
        assert (line.moves, line.conflicts) == (outcome.moves, outcome.conflicts)
        assert outcome.moves == outcome.moves_least
    assert [outcome.rounds for outcome in outcomes] == [1, 1, 1, 1]
    assert all(outcome.spread <= 1 for outcome in outcomes)


@pytest.mark.parametrize(("mode", "writes"), [("partition", 32 * 180), ("session", 4 * 180)])
def test_the_writes_of_a_balanced_group_follow_from_the_settings(mode, writes):
    """One renewal for each lease and third of the expiration, per partition or per processor."""
    steady, _ = played("32x4", LeaseMode(mode))

    assert steady.writes_per_hour == writes

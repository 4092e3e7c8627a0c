"""The benchmarks behind ``docs/scale.md`` run, and agree where both can simulate a group."""

from dataclasses import replace

import pytest

from benchmarks.rounds import measure as rounds_of
from benchmarks.scale import lines_of, script
from benchmarks.scale import measure as played
from eventproc import Even, Published
from eventproc.cli.verbs.simulate import memory_account
from eventproc.models import LeaseMode
from eventproc.simulation import play


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


def test_a_published_plan_makes_the_fewest_moves_without_a_conflict():
    """At a cold start, when a processor joins, and when one crashes; so do 1,000 on 50."""
    events = script(60, 6, LeaseMode.PARTITION, 200, "join:1@80", "crash:1@110")
    published = replace(events.config, placement=Published(Even()))
    history = play(replace(events, config=published), memory_account)
    lines = lines_of(history, "60x6", LeaseMode.PARTITION)

    assert [line.event for line in lines] == ["start:6", "join:1", "crash:1"]
    assert all(line.moves == line.moves_least > 0 for line in lines)
    assert all(line.conflicts == 0 for line in lines)

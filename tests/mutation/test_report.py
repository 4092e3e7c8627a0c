"""The tables say what is known, and what is not."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutation.guard import Guard
from tests.mutation.memory import Memory
from tests.mutation.report import table
from tests.mutation.verdict import ByTests, ByWorlds, Verdict

GUARD = Guard(name="g", without_it="w", words="x", mutated="y", file="a.py")


@pytest.fixture
def memory(tmp_path):
    """A memory that knows nothing yet."""
    return Memory(tmp_path / "verdicts.json")


def row(memory, guard=GUARD):
    """The last two columns of the guard's row."""
    (line,) = [ln for ln in table({"P": [guard]}, memory).splitlines() if "(`a.py`)" in ln]
    return line.strip("| ").split(" | ")[2:]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ByTests(killer="tests/unit/t.py::test_x[1]", error="E"), "`unit/t.py::test_x`"),
        (ByTests(), "**none**"),
        (ByTests(trouble="t hangs"), "not judged: a test hung or failed by itself"),
        (ByWorlds(seeds_tried=18, suite="safety", seed=17, violation="gap"), "`safety` 17"),
        (ByWorlds(seeds_tried=200), "none of 200 seeds"),
        (ByWorlds(seeds_tried=200, trouble="safety 3"), "none of 200 seeds; some never ended"),
    ],
)
def test_a_row_tells_what_was_said(memory, said, told):
    """And of the other column that nobody was asked."""
    memory.keep(GUARD, said, "abc")

    told_by_tests, told_by_worlds = row(memory)

    expected = (told, "not judged yet")
    assert (told_by_tests, told_by_worlds) == (
        expected if isinstance(said, ByTests) else expected[::-1]
    )


def test_what_is_not_in_the_simulated_world_is_said_to_be_so(memory):
    """Whatever a memory has of it."""
    assert row(memory, replace(GUARD, is_simulated=False))[1] == "not in it"


def test_a_verdict_counts_for_the_guard_that_was_judged(tmp_path, memory):
    """Where its words changed it is to be judged again; its killer is tried first."""
    memory.keep(GUARD, ByTests(killer="t", error="E"), "abc")
    memory = Memory(tmp_path / "verdicts.json")
    changed = replace(GUARD, mutated="z")

    assert memory.verdict(GUARD) == Verdict(tests=ByTests(killer="t", error="E"))
    assert memory.verdict(changed) == Verdict()
    assert memory.suspect(changed) == "t"
    assert "Of 1 guards 1 are missed" in table({"P": [GUARD]}, memory)
    assert "Of 1 guards 0 are missed" in table({"P": [changed]}, memory)


def test_trouble_is_no_kill():
    """Only a test that failed, or a world that broke a promise."""
    assert not Verdict(tests=ByTests(trouble="t hangs"), worlds=ByWorlds(seeds_tried=9)).is_killed
    assert Verdict(worlds=ByWorlds(seeds_tried=1, suite="safety", seed=0)).is_killed


def test_no_verdict_names_a_place_of_the_machine_it_was_found_on():
    """They are kept in the project."""
    kept = Path(__file__).with_name("verdicts.json").read_text("utf-8")

    assert re.findall(r"(?<![\w.])/(?:tmp|home|root|usr)/\S+", kept) == []

"""The report of `make mutants`, and the verdicts from which it is made."""

from dataclasses import replace

import pytest

from tests.mutation import report, verdict_file
from tests.mutation.guard import ROOT, Guard
from tests.mutation.report import table, write
from tests.mutation.verdict import ByTests, ByWorlds, Verdict
from tests.mutation.verdict_file import VerdictFile

GUARD = Guard(name="g", without_it="w", words="x", mutated="y", file="a.py")


@pytest.fixture
def verdicts(tmp_path):
    """Return an empty verdict file, whose folder does not exist yet."""
    return VerdictFile(tmp_path / "mutants/verdicts.json")


def row(verdicts, guard=GUARD):
    """Return the last two columns of the guard's row."""
    (line,) = [ln for ln in table({"P": [guard]}, verdicts).splitlines() if "(`a.py`)" in ln]
    return line.strip("| ").split(" | ")[2:]


@pytest.mark.parametrize(
    ("result", "cell"),
    [
        (ByTests(killer="tests/unit/t.py::test_x[1]", error="E"), "`unit/t.py::test_x`"),
        (ByTests(), "**none**"),
        (ByTests(trouble="t hangs"), "no result: a test hung, or fails without the mutation"),
        (ByWorlds(seeds_tried=18, suite="safety", seed=17, violation="gap"), "`safety` 17"),
        (ByWorlds(seeds_tried=200), "none of 200 seeds"),
        (ByWorlds(seeds_tried=200, trouble="safety 3"), "none of 200 seeds; some did not end"),
    ],
)
def test_a_row_has_the_result_of_each_trial(verdicts, result, cell):
    """One column has the result of the tests or of the simulation, the other says `not tried
    yet`."""
    verdicts.store(GUARD, result, "abc")

    by_tests, by_worlds = row(verdicts)

    expected = (cell, "not tried yet")
    assert (by_tests, by_worlds) == (expected if isinstance(result, ByTests) else expected[::-1])


def test_a_guard_outside_the_simulation_is_marked(verdicts):
    """The last column of its row is `not simulated`."""
    assert row(verdicts, replace(GUARD, is_simulated=False))[1] == "not simulated"


def test_a_verdict_counts_only_for_the_mutant_that_was_tried(tmp_path, verdicts):
    """A guard whose words changed has no verdict; the test that failed is still run first."""
    verdicts.store(GUARD, ByTests(killer="t", error="E"), "abc")
    verdicts = VerdictFile(tmp_path / "mutants/verdicts.json")
    changed = replace(GUARD, mutated="z")

    assert verdicts.verdict(GUARD) == Verdict(tests=ByTests(killer="t", error="E"))
    assert verdicts.verdict(changed) == Verdict()
    assert verdicts.last_killer(changed) == "t"
    assert "Of 1 removed guards 1 are noticed" in table({"P": [GUARD]}, verdicts)
    assert "Of 1 removed guards 0 are noticed" in table({"P": [changed]}, verdicts)


def test_only_a_failure_kills_a_mutant():
    """A test that hangs does not count; a failed test or a violated invariant does."""
    assert not Verdict(tests=ByTests(trouble="t hangs"), worlds=ByWorlds(seeds_tried=9)).is_killed
    assert Verdict(worlds=ByWorlds(seeds_tried=1, suite="safety", seed=0)).is_killed


def test_the_report_is_written_into_a_folder_that_git_ignores(tmp_path):
    """`write` creates the folder and replaces an earlier report; the verdicts are beside it."""
    file = tmp_path / "mutants/report.md"
    write("first", file)
    write("second", file)

    assert file.read_text("utf-8") == "second"
    assert {report.FILE.parent, verdict_file.FILE.parent} == {ROOT / ".tools/mutants"}

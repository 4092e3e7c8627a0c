"""The table of guards matches the source."""

import ast

import pytest

from tests.mutation.guard import ROOT, Guard, GuardGoneError, guards_in
from tests.mutation.guards.everything import GUARDS


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_stands_in_the_source(guard):
    """Each guard occurs exactly once, its mutant is valid Python, and its tests exist."""
    text = (ROOT / guard.file).read_text()

    assert ast.parse(guard.applied_to(text))
    assert all((ROOT / killer.split("::")[0]).exists() for killer in guard.killers)


def test_every_guard_has_a_name_of_its_own():
    """Names are unique, because verdicts are stored by name."""
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)


def test_words_that_are_gone_are_told():
    """Words that do not occur exactly once are an error that says what to update."""
    (guard,) = guards_in("a.py", [], Guard(name="n", without_it="w", words="x", mutated="y"))

    assert guard.applied_to("1 x 2") == "1 y 2"
    for text in ("none", "x x"):
        with pytest.raises(GuardGoneError, match="update the table"):
            guard.applied_to(text)

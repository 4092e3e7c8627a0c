"""The table of guards cannot rot: what it takes away stands in the source."""

import ast

import pytest

from tests.mutation.guard import ROOT, Guard, GuardGoneError, guards_in
from tests.mutation.guards.everything import GUARDS


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_stands_in_the_source(guard):
    """Once, and what is left without it is Python; its tests are there, too."""
    text = (ROOT / guard.file).read_text()

    assert ast.parse(guard.applied_to(text))
    assert all((ROOT / killer.split("::")[0]).exists() for killer in guard.killers)


def test_every_guard_has_a_name_of_its_own():
    """The report goes by names."""
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)


def test_words_that_are_gone_are_told():
    """And so are words that stand there twice: who knows which of them was meant?"""
    (guard,) = guards_in("a.py", [], Guard(name="n", without_it="w", words="x", mutated="y"))

    assert guard.applied_to("1 x 2") == "1 y 2"
    for text in ("none", "x x"):
        with pytest.raises(GuardGoneError, match="let the table"):
            guard.applied_to(text)

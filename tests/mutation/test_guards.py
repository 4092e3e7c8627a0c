"""The guards match the source."""

import ast

import pytest

from tests.mutation.guard import ROOT, Guard, GuardGoneError, guards_in
from tests.mutation.guards.everything import GUARDS


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_occurs_in_the_source_once(guard):
    """Its words occur exactly once in its file, its mutant is valid Python, and its tests exist."""
    text = (ROOT / guard.file).read_text()

    assert ast.parse(guard.applied_to(text))
    assert all((ROOT / killer.split("::")[0]).exists() for killer in guard.killers)


def test_guard_names_are_unique():
    """Verdicts are stored by the name of the guard."""
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)


def test_a_guard_that_does_not_occur_once_is_an_error():
    """``applied_to`` raises ``GuardGoneError``, which says what to update."""
    (guard,) = guards_in("a.py", [], Guard(name="n", without_it="w", words="x", mutated="y"))

    assert guard.applied_to("1 x 2") == "1 y 2"
    for text in ("none", "x x"):
        with pytest.raises(GuardGoneError, match="update the table"):
            guard.applied_to(text)

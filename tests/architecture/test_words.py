"""Names use the field's standard terms; ``docs/glossary.md`` says what each of them means."""

import ast
import re

import pytest

PRIVATE_WORDS = frozenset(
    {
        *("board", "desk", "door", "farewell", "floor", "floors", "gate", "gift", "gifts", "hasty"),
        *("heir", "heirs", "house", "law", "laws", "mishap", "neglect", "neglected", "nobody"),
        *("odd", "rob", "robbed", "robs", "roof", "seat", "sight", "sighting", "sightings"),
        *("stencil", "stray", "strays", "told", "whoever"),
    }
)
"""Metaphors and words of this project's own, for which the field has a term."""

PRIVATE_WORDS_IN_TESTS = PRIVATE_WORDS | {
    *("culprit", "culprits", "deaf", "everybody", "hall", "heard", "leaver", "leavers"),
    *("namesake", "namesakes", "nursery", "said", "shelf", "somebody", "stranger", "strangers"),
    *("thief", "who", "whom", "workshop"),
}
"""The same for tests, whose names are sentences: a sentence has a processor, not "who"."""

CHECKED_TESTS = (
    *("tests/architecture/", "tests/contract/", "tests/integration/", "tests/mutation/"),
    *("tests/simulation/", "tests/spark/", "tests/stories/", "tests/unit/"),
)
"""Tests whose names are checked."""

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(name):
    """Split a name in any spelling into its words, in lower case."""
    return {piece.lower() for piece in _PIECE.findall(name)}


def names_in(file):
    """Yield each name that a file gives to something: itself, a class, a function, a setting."""
    yield from file.name.removesuffix(".py").split("/")
    for node in ast.walk(file.tree):
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Call(
                func=ast.Attribute(attr="debug" | "info" | "warning" | "error"),
                args=[ast.Constant(value=str(event)), *_],
            ):
                yield event
            case _:
                continue


def variables_in(file):
    """Yield each name that a file assigns a value to."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_names_use_standard_terms(shipped):
    """No name in the packages that users install contains a private word."""
    found = sorted(
        {
            f"{file.name}: {name}"
            for file in shipped
            for name in names_in(file)
            if words_of(name) & PRIVATE_WORDS
        }
    )

    assert found == []


def test_names_in_tests_use_standard_terms(everything):
    """Tests are the specification, so they use the same terms: helpers and variables, too."""
    private = sorted(
        {
            f"{file.name}: {name}"
            for file in everything
            if file.name.startswith(CHECKED_TESTS)
            for name in (*names_in(file), *variables_in(file))
            if words_of(name) & PRIVATE_WORDS_IN_TESTS
        }
    )

    assert private == []


def test_commands_use_standard_terms():
    """No verb and no option of the command contains a private word."""
    typer = pytest.importorskip("typer")
    from eventproc.cli.app import app  # noqa: PLC0415

    def names(command):
        for parameter in command.params:
            yield from parameter.opts
        for name, below in getattr(command, "commands", {}).items():
            yield name
            yield from names(below)

    found = {n for n in names(typer.main.get_command(app)) if words_of(n) & PRIVATE_WORDS}

    assert found == set()


@pytest.mark.parametrize("name", ["is_robbed", "FrontDoor", "_told", "HTTPGate", "gift_2"])
def test_the_check_finds_a_word_in_any_spelling(name):
    """Snake case, camel case and abbreviations are split."""
    assert words_of(name) & PRIVATE_WORDS


@pytest.mark.parametrize("name", ["dashboard", "problem", "gateway", "outdoor"])
def test_the_check_does_not_find_a_word_inside_another(name):
    """A name is split into words before they are compared."""
    assert not words_of(name) & PRIVATE_WORDS

"""A file is one noun and a function fits on a screen."""

import ast

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
NAMELESS = {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_no_file_is_longer_than_anybody_reads(everything):
    """Beyond 400 lines a file is two nouns."""
    long = {
        file.name: lines for file in everything if (lines := file.text.count("\n")) > FILE_LINES_MAX
    }

    assert long == {}


def test_no_function_is_longer_than_a_screen(everything):
    """Beyond 70 lines of code a function is two verbs."""
    long = {
        f"{file.name}:{node.name}": lines
        for file in everything
        for node in ast.walk(file.tree)
        if isinstance(node, FUNCTIONS)
        if (lines := lines_of(node)) > FUNCTION_LINES_MAX
    }

    assert long == {}


def lines_of(function):
    """Count the lines of a function's body; what it takes and what it says of itself is no code."""
    explained = ast.get_docstring(function) is not None
    before = function.body[0].end_lineno if explained else function.body[0].lineno - 1
    return function.end_lineno - before


def test_the_inspector_counts_code():
    """The body counts; the signature and the docstring do not."""
    explained = ast.parse(
        'def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    b = a\n    return b'
    )
    plain = ast.parse("def f(\n    a,\n):\n    return a")

    assert (lines_of(explained.body[0]), lines_of(plain.body[0])) == (2, 1)


def test_every_file_has_a_name(everything):
    """What can only be called ``utils`` has no home."""
    nameless = [
        file.name
        for file in everything
        if NAMELESS & set(file.name.removesuffix(".py").replace("/", "_").split("_"))
    ]

    assert nameless == []

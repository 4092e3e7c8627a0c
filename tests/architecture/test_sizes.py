"""Limits for the lengths of files and functions, and for file names."""

import ast

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_no_file_is_longer_than_400_lines(everything):
    """A longer file has to be divided."""
    long = {
        file.name: lines for file in everything if (lines := file.text.count("\n")) > FILE_LINES_MAX
    }

    assert long == {}


def test_no_function_is_longer_than_70_lines(everything):
    """A longer function has to be divided."""
    long = {
        f"{file.name}:{node.name}": lines
        for file in everything
        for node in ast.walk(file.tree)
        if isinstance(node, FUNCTIONS)
        if (lines := lines_of(node)) > FUNCTION_LINES_MAX
    }

    assert long == {}


def lines_of(function):
    """Count the lines of a function's body, without its signature and its docstring."""
    explained = ast.get_docstring(function) is not None
    before = function.body[0].end_lineno if explained else function.body[0].lineno - 1
    return function.end_lineno - before


def test_the_check_counts_the_body_only():
    """The signature and the docstring of a function do not count."""
    explained = ast.parse(
        'def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    b = a\n    return b'
    )
    plain = ast.parse("def f(\n    a,\n):\n    return a")

    assert (lines_of(explained.body[0]), lines_of(plain.body[0])) == (2, 1)


def test_no_file_has_a_vague_name(everything):
    """A file is not called ``utils``, ``helpers``, ``common`` or the like."""
    vague = [
        file.name
        for file in everything
        if VAGUE_NAMES & set(file.name.removesuffix(".py").replace("/", "_").split("_"))
    ]

    assert vague == []

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
    """Beyond 70 lines, its explanation not counted, a function is two verbs."""
    long = {
        f"{file.name}:{node.name}": lines
        for file in everything
        for node in ast.walk(file.tree)
        if isinstance(node, FUNCTIONS)
        if (lines := lines_of(node)) > FUNCTION_LINES_MAX
    }

    assert long == {}


def lines_of(function):
    """Count a function's lines, without its docstring."""
    explanation = ast.get_docstring(function, clean=False) or ""
    return function.end_lineno - function.lineno + 1 - (explanation.count("\n") + bool(explanation))


def test_the_inspector_counts_code():
    """The signature and the body count, the docstring does not."""
    tree = ast.parse('def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    return a')

    assert lines_of(tree.body[0]) == 4


def test_every_file_has_a_name(everything):
    """What can only be called ``utils`` has no home."""
    nameless = [
        file.name
        for file in everything
        if NAMELESS & set(file.name.removesuffix(".py").replace("/", "_").split("_"))
    ]

    assert nameless == []

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
    """Beyond 70 lines a function is two verbs."""
    long = {
        f"{file.name}:{node.name}": lines
        for file in everything
        for node in ast.walk(file.tree)
        if isinstance(node, FUNCTIONS)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    }

    assert long == {}


def test_every_file_has_a_name(everything):
    """What can only be called ``utils`` has no home."""
    nameless = [
        file.name
        for file in everything
        if NAMELESS & set(file.name.removesuffix(".py").replace("/", "_").split("_"))
    ]

    assert nameless == []

"""Every test has a docstring."""

import ast

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def cases_in(file):
    """Return the test functions in a file, also those in classes."""
    return [
        node
        for node in ast.walk(file.tree)
        if isinstance(node, FUNCTIONS) and node.name.startswith("test_")
    ]


def test_every_test_has_a_docstring(tests):
    """The docstring of a test states the behaviour that it checks."""
    undocumented = [
        f"{file.name}:{test.lineno} {test.name}"
        for file in tests
        for test in cases_in(file)
        if ast.get_docstring(test) is None
    ]

    assert undocumented == []

"""A test says which behaviour it stands for."""

import ast

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def cases_in(file):
    """Return the test functions in a file, in classes too."""
    return [
        node
        for node in ast.walk(file.tree)
        if isinstance(node, FUNCTIONS) and node.name.startswith("test_")
    ]


def test_every_test_says_its_behaviour(tests):
    """When it fails, its docstring is what the reader needs first."""
    silent = [
        f"{file.name}:{test.lineno} {test.name}"
        for file in tests
        for test in cases_in(file)
        if ast.get_docstring(test) is None
    ]

    assert silent == []

"""Modules in ``eventproc/_core`` get the time and random numbers as arguments."""

import ast

CLOCKS = {"now", "utcnow", "today", "monotonic", "perf_counter"}
IMPURE_MODULES = {"time", "random", "os", "secrets", "uuid"}


def impure_calls(tree: ast.Module) -> list[str]:
    """Return the calls in a module that read a clock or a global random generator."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value
        is_impure = isinstance(owner, ast.Name) and owner.id in IMPURE_MODULES
        if node.func.attr in CLOCKS or is_impure:
            found.append(f"line {node.lineno}: {ast.unparse(node.func)}()")
    return found


def test_core_reads_no_clock_and_no_global_random_generator(shipped):
    """No call in ``eventproc/_core`` reads a clock, ``random``, ``os``, ``secrets`` or ``uuid``."""
    impure = {
        file.name: calls
        for file in shipped
        if file.name.startswith("eventproc/_core/")
        if (calls := impure_calls(file.tree))
    }

    assert impure == {}


def test_the_check_finds_clocks_and_global_random_numbers():
    """Calls of a clock and of ``random`` are found; a ``Random`` that was passed in is not."""
    tree = ast.parse("datetime.now(UTC)\nrandom.random()\nrng.random()\ntime.time()")

    assert [line.split(":")[0] for line in impure_calls(tree)] == ["line 1", "line 2", "line 4"]

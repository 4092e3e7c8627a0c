"""The floor of decisions is given time and chance; it never asks for them."""

import ast

CLOCKS = {"now", "utcnow", "today", "monotonic", "perf_counter"}
WORLD = {"time", "random", "os", "secrets", "uuid"}


def asked(tree: ast.Module) -> list[str]:
    """Return the calls in a module that ask the world for time or chance."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value
        of_the_world = isinstance(owner, ast.Name) and owner.id in WORLD
        if node.func.attr in CLOCKS or of_the_world:
            found.append(f"line {node.lineno}: {ast.unparse(node.func)}()")
    return found


def test_core_never_asks_for_time_or_chance(shipped):
    """No call in ``eventproc/core`` reads a clock or a global source of chance."""
    guilty = {
        file.name: asked(file.tree)
        for file in shipped
        if file.name.startswith("eventproc/core/") and asked(file.tree)
    }

    assert guilty == {}


def test_the_inspector_sees_a_clock():
    """A clock and a die are found, a ``Random`` that was passed in is not."""
    tree = ast.parse("datetime.now(UTC)\nrandom.random()\nrng.random()\ntime.time()")

    assert [line.split(":")[0] for line in asked(tree)] == ["line 1", "line 2", "line 4"]

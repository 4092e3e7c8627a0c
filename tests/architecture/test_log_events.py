"""``docs/log-events.md`` lists exactly the events that the code may log."""

import ast
import re

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
LOGGERS = {"log", "_log", "logger", "_logger", "_LOG"}
FACT = re.compile(r"[a-z]+(_[a-z]+)+")
ROW = re.compile(r"^\| *`([a-z_]+)` *\|", re.MULTILINE)


def name_of(node: ast.expr) -> str:
    """Return the last name of ``a``, ``b.a`` or ``b.a.bind()``; ``log`` for ``get_logger()``."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Attribute(value=value, attr="bind")):
            return name_of(value)
        case ast.Call(func=ast.Name(id="get_logger")):
            return "log"
        case _:
            return ""


def spelled(event: ast.expr) -> str:
    """Return the text of a constant, and the source of anything else."""
    if isinstance(event, ast.Constant) and isinstance(event.value, str):
        return event.value
    return ast.unparse(event)


def logged(tree: ast.Module) -> set[str]:
    """Return the names of the events that a module logs."""
    events = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=level), args=[event, *_]) if (
                level in LEVELS and name_of(value) in LOGGERS
            ):
                events.add(spelled(event))
            case ast.Call(func=ast.Name(id=name), args=[event, *_]) if name in LOGGERS:
                events.add(spelled(event))  # log = self._log.warning if ... else self._log.debug
            case ast.Call(func=ast.Name(id="ConditionLogger"), args=[_, begins, ends]):
                events |= {spelled(begins), spelled(ends)}
            case _:
                continue
    return events


def test_the_catalogue_of_log_events_is_complete(shipped, root):
    """Each event in the code has a row in the page, and each row an event in the code."""
    in_code = {event for file in shipped for event in logged(file.tree)}
    catalogue = root / "docs/log-events.md"
    in_catalogue = set(ROW.findall(catalogue.read_text("utf-8"))) if catalogue.exists() else set()

    assert in_code == in_catalogue


def test_log_events_are_constant_names(shipped):
    """An event is a constant like ``partition_started``; what varies is a field."""
    malformed = {
        (file.name, event)
        for file in shipped
        for event in logged(file.tree)
        if not FACT.fullmatch(event)
    }

    assert malformed == set()


def test_the_check_finds_log_calls():
    """Calls on plain, bound and chained loggers are found, and the events of conditions; methods of
    others called ``info`` are not."""
    tree = ast.parse(
        'log.info("a_b")\nself._log.bind(x=1).error(f"x")\nlog("e_f")\nhub.info("c_d")\n'
        'ConditionLogger(log, "g_failed", "g_recovered")'
    )

    assert logged(tree) == {"a_b", "f'x'", "e_f", "g_failed", "g_recovered"}

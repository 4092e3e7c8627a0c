"""Runs tests and worlds in processes that have pytest and the vendors in them already.

    echo '{"runs": "tests", "arguments": [...], "within_s": 300}' | python -m tests.mutation.nursery

A start of pytest takes seconds, and most mutants die in a fraction of one. Here it is started once;
for each line of JSON on the input a child is forked, which alone imports the project. The answer
is a line with the child's exit code, or ``null`` where it had to be killed.
"""

import importlib
import json
import os
import runpy
import signal
import sys
import time
from contextlib import suppress
from typing import Any, Final

VENDORS: Final = (
    *("pytest", "_pytest.doctest", "_pytest.unittest", "pytest_timeout", "xdist.plugin"),
    *("hypothesis", "hypothesis.strategies", "hypothesis.extra.pytestplugin", "sybil"),
    *("_hypothesis_pytestplugin", "hypothesis.internal.conjecture.engine", "blockbuster"),
    *("structlog", "aiohttp", "azure.storage.blob", "azure.storage.blob.aio"),
    *("azure.eventhub", "azure.eventhub.aio", "tenacity", "sqlite3", "asyncio"),
)
POLL_S: Final = 0.05


def main() -> None:
    """Serve until the input ends."""
    for name in VENDORS:
        with suppress(ImportError):
            importlib.import_module(name)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # Its child ends with it.
    assert "eventproc" not in sys.modules, "the project is imported by children alone"
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(_raise_child(asked)), flush=True)


def _raise_child(asked: dict[str, Any]) -> int | None:
    """Let a child do what was asked for; return its exit code."""
    pid = os.fork()
    if pid == 0:
        os._exit(_work(asked))
    ends_at = time.monotonic() + asked["within_s"]
    try:
        while time.monotonic() < ends_at:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(POLL_S)
    finally:
        _end_group(pid)
    os.waitpid(pid, 0)
    return None


def _end_group(pid: int) -> None:
    """End a child, and what it may have started and left behind."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _work(asked: dict[str, Any]) -> int:
    """In the child, whose output goes to a file."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = 3
    try:
        if asked["runs"] == "tests":
            import pytest  # noqa: PLC0415 - the vendors are imported by then

            code = int(pytest.main(asked["arguments"]))
        else:
            sys.argv = ["worlds", *asked["arguments"]]
            runpy.run_module("tests.mutation.worlds", run_name="__main__")
            code = 0
    except BaseException:  # noqa: BLE001 - the child ends here, whatever it was
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    main()

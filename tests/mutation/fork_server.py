"""A fork server: runs tests and simulated worlds in children of a process that imported pytest.

    echo '{"runs": "tests", "arguments": [], "within_s": 9}' | python -m tests.mutation.fork_server

Importing pytest and the vendors' packages takes seconds, and most mutants fail in a fraction of
one. So the server imports them once, and forks a child for each line of JSON on its input. Only the
child imports the project. The answer is a line with its exit code, or ``null`` if it was killed
after ``within_s`` seconds.
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
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit()
    )  # exits through the finally that ends a child
    assert "eventproc" not in sys.modules, "only the children may import the project"
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_raise_child(request)), flush=True)


def _raise_child(request: dict[str, Any]) -> int | None:
    """Fork a child for a request; return its exit code."""
    pid = os.fork()
    if pid == 0:
        os._exit(_work(request))
    ends_at = time.monotonic() + request["within_s"]
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
    """Kill a child and the processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _work(request: dict[str, Any]) -> int:
    """Carry out a request in the child, with its output in a file; return the exit code."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = 3
    try:
        if request["runs"] == "tests":
            import pytest  # noqa: PLC0415 - the vendors are imported by then

            code = int(pytest.main(request["arguments"]))
        else:
            sys.argv = ["worlds", *request["arguments"]]
            runpy.run_module("tests.mutation.worlds", run_name="__main__")
            code = 0
    except BaseException:  # noqa: BLE001 - the child ends here in any case
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    main()

"""Which command lines run until a signal ends them: then an early signal is no failure."""

import os
import subprocess
import sys

import pytest

from eventproc._command.entry_point import _is_serving


@pytest.mark.parametrize(
    "line",
    [
        "run orders:Handler --store sqlite:group.db",
        "hold keys:Key --group keys",
        "emulator --hub orders:8",
        "dashboard --eventhub orders",
        "scale --watch --eventhub orders",
        "scale --http=8080",
        "scale --grpc 0.0.0.0:6000",
    ],
)
def test_a_verb_that_serves_is_known_before_its_module_is_imported(line):
    assert _is_serving(line.split())


@pytest.mark.parametrize(
    "line", ["", "--help", "status --watch", "scale --eventhub orders", "checkpoints list", "demo"]
)
def test_a_verb_that_ends_by_itself_is_interrupted_by_an_early_signal(line):
    assert not _is_serving(line.split())


ENDED = """
import signal
from eventproc._command.entry_point import keep_exit_code

print("a table")
keep_exit_code(3)
signal.raise_signal(signal.SIGTERM)
"""


def test_a_signal_while_python_shuts_down_changes_neither_output_nor_exit_code():
    """Standard output is a pipe, which has not got the last lines yet."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", ENDED],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )

    assert (done.returncode, done.stdout) == (3, "a table\n"), done.stderr

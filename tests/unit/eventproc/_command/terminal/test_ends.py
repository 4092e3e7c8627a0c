"""How a child process begins, which ends at the end of its standard input."""

import os
import subprocess
import sys

import pytest

from eventproc._command.terminal.ends import start_child


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")
def test_ctrl_c_in_the_terminal_signals_the_parent_alone():
    """A child would take it, and its parent's request after it, as two requests to stop.

    It stays in the session, so that the terminal's end reaches it.
    """
    child = start_child(
        [sys.executable, "-c", "input()"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={},
    )
    try:
        assert os.getpgid(child.pid) == child.pid
        assert os.getsid(child.pid) == os.getsid(0)
    finally:
        child.kill()
        child.stdin.close()
        child.wait()

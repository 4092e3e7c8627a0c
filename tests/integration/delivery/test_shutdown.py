"""Real processes that are asked to stop while their handler does not return."""

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

STUCK = Path(__file__).with_name("stuck.py")
WAYS = {
    "blocked": (signal.SIGINT, 1),
    "deaf": (signal.SIGTERM, 1),
    "logging": (signal.SIGTERM, 1),
    "thread": (signal.SIGINT, 1),
    "waiting": (signal.SIGTERM, 0),
}
"""Ways to hang, with signal and exit code: only a handler that awaits can be cancelled."""

TIMEOUT_S = 120


def started(way: str) -> "subprocess.Popen[bytes]":
    """Return a process whose handler was called, and does not return."""
    process = subprocess.Popen([sys.executable, STUCK, way], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"called\n"
    return process


def test_a_stop_ends_within_its_timeout_however_the_handler_hangs():
    """The exit code is 0 only if the handler could be cancelled."""
    processes = {way: started(way) for way in WAYS}
    for way, process in processes.items():
        process.send_signal(WAYS[way][0])
    output = {way: process.communicate(timeout=TIMEOUT_S)[0] for way, process in processes.items()}

    assert {way: process.returncode for way, process in processes.items()} == {
        way: code for way, (_, code) in WAYS.items()
    }
    assert output == {way: b"" if code else b"returned\n" for way, (_, code) in WAYS.items()}


def test_a_second_signal_kills_the_process_at_once():
    """The signal's default action ends a process whose handler blocks the event loop."""
    with started("blocked") as process:
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)

    assert process.returncode == -signal.SIGTERM

"""Real processes that are asked to stop while their handler does not listen."""

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
"""Ways to be stuck, the signal, and the exit code: only who waits can be cancelled."""

PATIENCE_S = 30


def started(way: str) -> "subprocess.Popen[bytes]":
    """A process whose handler was called, and does not come back."""
    process = subprocess.Popen([sys.executable, STUCK, way], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"called\n"
    return process


def test_a_stop_has_an_end_whatever_the_handler_does():
    """Within the time that it may take and a little, and the exit code tells in which order."""
    processes = {way: started(way) for way in WAYS}
    for way, process in processes.items():
        process.send_signal(WAYS[way][0])
    said = {way: process.communicate(timeout=PATIENCE_S)[0] for way, process in processes.items()}

    assert {way: process.returncode for way, process in processes.items()} == {
        way: code for way, (_, code) in WAYS.items()
    }
    assert said == {way: b"" if code else b"returned\n" for way, (_, code) in WAYS.items()}


def test_a_second_signal_ends_it_at_once():
    """Also where nothing else gets through to the program."""
    with started("blocked") as process:
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)

    assert process.returncode == -signal.SIGTERM

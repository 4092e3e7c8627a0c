"""The demo with few events: nothing is lost, its result is right, and no process is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eventproc.testing._azurite import PROGRAM_VARIABLE


def start(*options, folder, **env):
    """Start a demo with few events, which keeps its files in *folder*."""
    small = ("--events", "3000", "--processors", "2")
    return subprocess.Popen(
        [sys.executable, "-m", "eventproc", "demo", *small, *options],
        env={**os.environ, "TMPDIR": str(folder), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(demo, text):
    """Read what a demo prints until a line has *text* in it."""
    for line in demo.stdout:
        if text in line:
            return
    raise AssertionError(f"the demo ended before it said {text!r}: {demo.stderr.read()}")


def processes_of(folder):
    """Return the command lines of processes whose environment names *folder*."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (path / "environ").read_bytes():
                found.append((path / "cmdline").read_text())
        except OSError:
            continue  # it ended meanwhile, or is not ours
    return found


@pytest.mark.parametrize("store", ["sqlite", "azurite"])
def test_the_demo_loses_nothing_and_its_result_is_right(tmp_path, store):
    """With either store; standard output has the report alone."""
    demo = start("--store", store, "--format", "json", folder=tmp_path)
    out, err = demo.communicate()
    report = json.loads(out)
    kinds = [change["kind"] for change in report["changes"]]

    assert (demo.returncode, report["problems"]) == (0, [])
    assert (report["published"], report["handled"], report["lost"]) == (3000, 3000, 0)
    assert report["result_matches"] is True
    assert report["duplicates_unexplained"] == 0
    frozen = ["freeze", "thaw"] if store == "azurite" else []
    assert kinds == ["start", "join", "join", "kill", *frozen, "leave"]
    assert all(change["seconds_to_balance"] is not None for change in report["changes"])
    assert all(change["moves"] >= change["moves_minimum"] for change in report["changes"])
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (signal.SIGINT, "starting the Event Hubs emulator"),
        (signal.SIGTERM, "publishing"),
        (signal.SIGINT, "balanced after"),
    ],
)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_an_interrupted_demo_leaves_no_process_and_no_file(tmp_path, number, line):
    """In each phase a signal ends the demo with exit code 130 and without a traceback."""
    demo = start("--store", "sqlite", folder=tmp_path)
    wait_for(demo, line)
    demo.send_signal(number)
    _, err = demo.communicate(timeout=60)

    assert demo.returncode == 130
    assert err == "eventproc: interrupted; every process has ended\n"
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_the_processes_of_a_killed_demo_end_by_themselves(tmp_path):
    """After SIGKILL of the demo, each child process notices it."""
    demo = start("--store", "sqlite", folder=tmp_path)
    wait_for(demo, "balanced after")
    alive = processes_of(tmp_path)
    demo.kill()
    demo.communicate()
    deadline_s = time.monotonic() + 15
    while processes_of(tmp_path) and time.monotonic() < deadline_s:
        time.sleep(0.05)  # children of another process cannot be awaited

    assert len(alive) >= 4
    assert processes_of(tmp_path) == []


def test_the_demo_without_azurite_uses_sqlite(tmp_path):
    """The demo says so; with ``--store azurite`` it is an error that names the missing program."""
    missing = {PROGRAM_VARIABLE: "/nowhere/azurite-blob"}
    demo = start(folder=tmp_path, **missing)
    wait_for(demo, "no Azurite, so the group is kept in SQLite")
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=60)
    asked = start("--store", "azurite", folder=tmp_path, **missing)
    _, err = asked.communicate(timeout=60)

    assert asked.returncode == 2
    assert "/nowhere/azurite-blob" in err

"""Demos as processes: started, read and looked for."""

import os
import subprocess
import sys
from pathlib import Path


def start(verb, *options, folder, **env):
    """Start a demo that keeps its files in *folder*."""
    return subprocess.Popen(
        [sys.executable, "-m", "eventproc.cli", verb, *options],
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

"""Signals that arrive while the command still imports its modules."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SLOW = """
import time
print("importing", flush=True)
for _ in range(1200):
    time.sleep(0.05)  # A signal directly before a call is handled after it.
"""
"""A module that takes long to import."""

SCRIPT = "import sys; from eventproc._command.entry_point import main; sys.exit(main())"
"""The installed script."""


def importing(tmp_path, module, *arguments):
    """Start the command; return its process while it imports a module."""
    (tmp_path / f"{module}.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    return process


RUN = ("run", "orders:Handler", "--eventhub", "orders", "--store", "sqlite:group.db")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("module", ["structlog", "typer", "orders"])
def test_a_signal_during_imports_ends_run_with_exit_code_0(tmp_path, module, number):
    """The module may be of the library, of the command or of the user; nothing is claimed yet."""
    process = importing(tmp_path, module, *RUN)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 0
    assert err == f"eventproc: ended by {number.name}, nothing was under way\n"


HUB = ("--eventhub", "orders", "--store", "sqlite:group.db")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "words",
    [
        ("hold", "keys:Key", "--resources", "a", "--group", "keys", "--store", "sqlite:group.db"),
        ("dashboard", *HUB),
        ("scale", *HUB, "--watch"),
        ("scale", *HUB, "--http", "0"),
        ("scale", *HUB, "--grpc=0"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_a_signal_during_imports_ends_verbs_that_serve_with_exit_code_0(tmp_path, words, number):
    """As ``run``, they are ended by signals only."""
    process = importing(tmp_path, "typer", *words)
    process.send_signal(number)
    process.communicate(timeout=60)

    assert process.returncode == 0


@pytest.mark.parametrize("words", [("status", "--watch"), ("scale", *HUB)], ids=" ".join)
def test_a_signal_during_imports_ends_other_verbs_with_exit_code_130(tmp_path, words):
    """SIGTERM interrupts verbs that end by themselves, also ``scale`` without --watch."""
    process = importing(tmp_path, "typer", *words)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)

    assert process.returncode == 130


IMPORTED_FIRST = """
import sys
before = set(sys.modules)
from eventproc._command import entry_point
print(*sorted(set(sys.modules) - before))
"""


def test_no_other_package_is_imported_before_the_signal_handlers_are_installed():
    """Until then a signal kills the process, so only the standard library may be imported."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", IMPORTED_FIRST], capture_output=True, text=True, check=True
    )
    imported = done.stdout.split()

    assert "eventproc._command.entry_point" in imported
    assert {name.partition(".")[0] for name in imported} - sys.stdlib_module_names == {"eventproc"}
    assert {name for name in imported if name.startswith("eventproc.")} == {
        "eventproc._command",
        "eventproc._command.arguments",
        "eventproc._command.arguments.option_names",
        "eventproc._command.entry_point",
        "eventproc._command.terminal",
        "eventproc._command.terminal.exits",
        "eventproc.errors",
        "eventproc._base",
        "eventproc._base.extras",
    }


def test_an_interrupt_during_imports_prints_nothing(tmp_path):
    """Ctrl+C ends the command without a traceback."""
    process = importing(tmp_path, "structlog", "status")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (130, "")


def test_script_and_module_have_the_same_entry_point():
    """The installed script and ``python -m eventproc`` handle early signals."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module = (ROOT / "eventproc/__main__.py").read_text()

    assert project["scripts"]["eventproc"] == "eventproc._command.entry_point:main"
    assert "from eventproc._command.entry_point import main" in module


SHUTS_DOWN = """
import atexit, sys
from eventproc._command.entry_point import main

def wait():
    print("shutting down", flush=True)
    sys.stdin.readline()

atexit.register(wait)
sys.exit(main())
"""


def test_a_signal_while_python_shuts_down_does_not_replace_the_exit_code():
    """A supervisor would take -15 for a process that was killed."""
    with subprocess.Popen(
        [sys.executable, "-c", SHUTS_DOWN, "run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "shutting down\n"
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate("\n", timeout=60)
        except BrokenPipeError:  # It ended at once.
            process.wait(timeout=60)

    assert process.returncode == 2

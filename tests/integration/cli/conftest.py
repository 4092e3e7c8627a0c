"""Runs the command against a real hub: to its end in this process, or in one of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventproc._command import main
from eventproc.emulator import EventHubsEmulator

SECRETS = (
    "EVENTPROC_CONNECTION_STRING",
    "EVENTPROC_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_CONNECTION_STRING",
)


IN_A_PROCESS = ("run", "hold")
"""Verbs that import the user's modules, which another test has under the same name."""


class Command:
    """Runs the command, and kills its processes that still run at the end of the test."""

    def __init__(self, folder, capsys=None):
        """Without *capsys* each command has a process of its own, as in a running loop."""
        self._folder = folder
        self._capsys = capsys
        self._processes = []

    def start(self, *arguments, **env):
        """Start the command in the test's folder, with the environment without secrets, and
        *env*."""
        clean = {name: value for name, value in os.environ.items() if name not in SECRETS}
        process = subprocess.Popen(
            [sys.executable, "-m", "eventproc", *map(str, arguments)],
            cwd=self._folder,
            env=clean | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return process

    def run(self, *arguments, **env):
        """Run the command to its end; return exit code, standard output and standard error."""
        if self._capsys is None or arguments[0] in IN_A_PROCESS:
            process = self.start(*arguments, **env)
            out, err = process.communicate(timeout=120)
            return process.returncode, out, err
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self._folder)
            for name in SECRETS:
                patch.delenv(name, raising=False)
            for name, value in env.items():
                patch.setenv(name, value)
            self._capsys.readouterr()
            code = main([*map(str, arguments)])
            return code, *self._capsys.readouterr()

    def close(self):
        """Kill all processes."""
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def command(tmp_path, capsys) -> Iterator[Command]:
    """Yield a ``Command`` with a folder for this test."""
    made = Command(tmp_path, capsys)
    yield made
    made.close()


@pytest.fixture
def orders() -> Iterator[EventHubsEmulator]:
    """Yield an emulator with a hub ``orders`` of four partitions."""
    with EventHubsEmulator({"orders": 4}) as emulator:
        yield emulator


@pytest.fixture
def root_config() -> Path:
    """Return the configuration for the official emulator."""
    return Path(__file__).parents[3] / "docker/Config.json"

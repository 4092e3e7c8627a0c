"""Runs the command in a process of its own, against a real hub."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventproc.emulator import EventHubsEmulator

SECRETS = (
    "EVENTPROC_CONNECTION_STRING",
    "EVENTPROC_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_CONNECTION_STRING",
)


class Command:
    """Starts the command in processes, and kills those that still run at the end of the test."""

    def __init__(self, folder):
        self._folder = folder
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
        process = self.start(*arguments, **env)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def close(self):
        """Kill all processes."""
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def command(tmp_path) -> Iterator[Command]:
    """Yield a ``Command`` with a folder for this test."""
    made = Command(tmp_path)
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

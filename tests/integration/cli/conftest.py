"""The command as people run it: in a process of its own, against a real hub."""

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
    """Starts the command; what is still running at the end of the test is killed."""

    def __init__(self, folder):
        self._folder = folder
        self._processes = []

    def start(self, *arguments, **env):
        """Start it in the test's folder, with nothing of ours in its environment but *env*."""
        clean = {name: value for name, value in os.environ.items() if name not in SECRETS}
        process = subprocess.Popen(
            [sys.executable, "-m", "eventproc.cli", *map(str, arguments)],
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
        """Run it to its end; return exit code, standard output and standard error."""
        process = self.start(*arguments, **env)
        out, err = process.communicate(timeout=40)
        return process.returncode, out, err

    def close(self):
        """Leave nothing behind."""
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def command(tmp_path) -> Iterator[Command]:
    """Return what starts the command in a folder of the test's own."""
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
    """Return the configuration that this project gives to the official emulator."""
    return Path(__file__).parents[3] / "docker/Config.json"

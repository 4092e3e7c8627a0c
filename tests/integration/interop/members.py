"""Processes with processors of every SDK, in one group, and the lines that they print.

Names are spelled alike by all: the hub and the group are in lower case, and the emulator has port
5672 on an address of its own, so that connection strings have no port.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.emulator.foreign_clients import ForeignClient, Program

ROOT = Path(__file__).resolve().parents[3]
JAVASCRIPT = ROOT / "tests/integration/emulator/javascript"
SDKS = ("ours", "python", "javascript", "java", "go")
STOP_MAX_S = 40


@dataclass(frozen=True)
class Place:
    """Where a group is, and its members' settings; with zeros, each has its SDK's defaults."""

    connection: str
    hub: str
    group: str
    storage: str
    container: str
    interval_s: float
    expiration_s: float


def _own(sdk: str) -> Callable[[Place], Program]:
    def start(place: Place) -> Program:
        names = (place.connection, place.hub, place.group, place.storage, place.container)
        times = (str(place.interval_s), str(place.expiration_s))
        module = "tests.integration.interop.member"
        return Program([sys.executable, "-m", module, sdk, *names, *times])

    return start


def _javascript(place: Place) -> Program:
    names = (place.connection, place.hub, place.group, place.storage, place.container)
    milliseconds = (place.interval_s * 1000, place.expiration_s * 1000)
    times = [f"{each:.0f}" for each in milliseconds if each]
    node = shutil.which("node")
    return Program([str(node), str(JAVASCRIPT / "processor.js"), *names, *times])


def _foreign(sdk: str) -> Callable[[Place], Program]:
    def start(place: Place) -> Program:
        client = ForeignClient(sdk)
        client.connect(place.connection, place.hub, place.group)
        client.ask(
            "process",
            storage=place.storage,
            container=place.container,
            interval_s=place.interval_s,
            expiration_s=place.expiration_s,
        )
        return client

    return start


START: dict[str, Callable[[Place], Program]] = {
    "ours": _own("ours"),
    "python": _own("python"),
    "javascript": _javascript,
    "java": _foreign("java"),
    "go": _foreign("go"),
}


class Member:
    """One process, its faults, and what it handled."""

    def __init__(self, sdk: str, number: int, place: Place) -> None:
        self.sdk = sdk
        self.name = f"{sdk} {number}"
        self.harmed_s: list[tuple[float, float]] = []
        """When it was frozen or killed, from and to."""

        self._program = START[sdk](place)
        self._owned = set[str]()
        self._read_count = 0

    @property
    def said(self) -> list[dict[str, Any]]:
        """The lines that it printed so far."""
        return self._program.said

    def owned(self) -> set[str]:
        """Return the partitions that it has opened and not closed."""
        news = self.said[self._read_count :]
        self._read_count += len(news)
        for line in news:
            if "opened" in line:
                self._owned.add(line["opened"])
            self._owned.discard(line.get("closed", ""))
        return {*self._owned}

    def stop(self) -> bool:
        """Stop it gracefully; return whether it ended by itself."""
        has_ended = self._program.stop(STOP_MAX_S)
        if not has_ended:
            self._note_killed()
        return has_ended

    def kill(self) -> None:
        """Kill it."""
        self._note_killed()
        self._program.kill()

    def _note_killed(self) -> None:
        self.harmed_s.append((time.monotonic(), float("inf")))

    def freeze(self, duration_s: float) -> None:
        """Suspend it for a while."""
        began_s = time.monotonic()
        os.kill(self._program.process.pid, signal.SIGSTOP)
        time.sleep(duration_s)
        os.kill(self._program.process.pid, signal.SIGCONT)
        self.harmed_s.append((began_s, time.monotonic()))

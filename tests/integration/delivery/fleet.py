"""Real processes over one emulator and one store, and what they tell of themselves."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from azure.eventhub import EventData, EventHubProducerClient

from eventproc.emulator import EventHubsEmulator

ROOT: Final = Path(__file__).parents[3]
KEYS: Final = 10
BATCH_SIZE: Final = 2_000
PATIENCE_S: Final = 120.0


def send(
    producer: EventHubProducerClient,
    numbers: Sequence[int],
    partition_id: str,
    special: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Send these events in one batch."""
    batch = producer.create_batch(partition_id=partition_id)
    for number in numbers:
        event = EventData(special.get(number, "x"))
        event.properties = {"key": f"k{number % KEYS}"}
        batch.add(event)
    producer.send_batch(batch)


class Fleet:
    """Processes over one emulator and one store."""

    def __init__(
        self, emulator: EventHubsEmulator, place: Path, store: str = "", **settings: object
    ) -> None:
        self._conn_str = emulator.connection_string_for("hub")
        self._place = place
        self._store = store or str(place / "store.db")
        self._settings = settings
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def publish(
        self, count: int, special: Mapping[int, str] | None = None, partition_id: str = "0"
    ) -> None:
        """Publish events, each under one of a few keys; what is special says so in its body."""
        with EventHubProducerClient.from_connection_string(self._conn_str) as producer:
            for first in range(0, count, BATCH_SIZE):
                numbers = range(first, min(first + BATCH_SIZE, count))
                send(producer, numbers, partition_id, special or {})

    def start(self, owner_id: str) -> None:
        """Start a process."""
        self.processes[owner_id] = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.integration.delivery.worker"),
                self._conn_str,
                self._store,
                owner_id,
                str(self._place / "story"),
                json.dumps(self._settings),
            ],
            stdin=subprocess.PIPE,
            cwd=ROOT,
        )

    def stop(self, owner_id: str) -> None:
        """Let a process end in good order."""
        self.processes.pop(owner_id).communicate(timeout=PATIENCE_S)

    def kill(self, owner_id: str) -> None:
        """Let it end at once."""
        process = self.processes.pop(owner_id)
        process.kill()
        process.communicate()

    def story(self) -> list[list[object]]:
        """What was told: who, what, and about which event."""
        path = self._place / "story"
        if not path.exists():
            return []
        told = path.read_text()
        whole = told[: told.rfind("\n") + 1]  # the last line may be half written
        return [json.loads(line) for line in whole.splitlines()]

    @property
    def told_count(self) -> int:
        """How many things were told: quicker than to read them."""
        path = self._place / "story"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def numbers(self, what: str) -> list[int]:
        """The events that this happened to."""
        return [int(str(facts[3])) for facts in self.story() if facts[1] == what]

    def places(self) -> list[tuple[str, int]]:
        """Partition and number of what was handled, in order."""
        return [
            (str(facts[2]), int(str(facts[3]))) for facts in self.story() if facts[1] == "handled"
        ]

    def lately_busy(self, count: int) -> list[str]:
        """Who told the last things."""
        return sorted({str(facts[0]) for facts in self.story()[-count:]})

    def revive(self) -> None:
        """Start again whoever died."""
        for owner_id, process in list(self.processes.items()):
            if process.poll() is not None:
                process.communicate()
                self.start(owner_id)

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait, and start again whoever dies meanwhile."""
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until_s, self.story()[-5:]
            self.revive()
            time.sleep(0.05)

    def until_told(self, count: int) -> None:
        """Wait until so many things were told."""
        self.until(lambda: self.told_count >= count)

    def end(self) -> None:
        """Leave nothing behind."""
        for owner_id in list(self.processes):
            self.kill(owner_id)

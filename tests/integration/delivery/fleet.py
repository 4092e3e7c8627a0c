"""Real processes with one emulator and one store, and the journal that they write."""

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
TIMEOUT_S: Final = 400.0
JOURNAL: Final = "journal"


def send(
    producer: EventHubProducerClient,
    numbers: Sequence[int],
    partition_id: str,
    special: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Publish these events in one batch; *special* has the bodies of some of them."""
    batch = producer.create_batch(partition_id=partition_id)
    for number in numbers:
        event = EventData(special.get(number, "x"))
        event.properties = {"key": f"k{number % KEYS}"}
        batch.add(event)
    producer.send_batch(batch)


class Fleet:
    """Processes with one emulator and one store."""

    def __init__(
        self,
        emulator: EventHubsEmulator | str,
        place: Path,
        store: str = "",
        **settings: object,
    ) -> None:
        self._conn_str = (
            emulator if isinstance(emulator, str) else emulator.connection_string_for("hub")
        )
        self._place = place
        self._store = store or str(place / "store.db")
        self._settings = settings
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def publish(self, count: int, special: Mapping[int, str] | None = None) -> None:
        """Publish events, each with one of a few keys; *special* has the bodies of some of them."""
        with EventHubProducerClient.from_connection_string(self._conn_str) as producer:
            for first in range(0, count, BATCH_SIZE):
                numbers = range(first, min(first + BATCH_SIZE, count))
                send(producer, numbers, "0", special or {})

    def start(self, owner_id: str) -> None:
        """Start a process."""
        self.processes[owner_id] = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.integration.delivery.worker"),
                self._conn_str,
                self._store,
                owner_id,
                str(self._place / JOURNAL),
                json.dumps(self._settings),
            ],
            stdin=subprocess.PIPE,
            cwd=ROOT,
        )

    def stop(self, owner_id: str) -> None:
        """Stop a process by the end of its input."""
        self.processes.pop(owner_id).communicate(timeout=TIMEOUT_S)

    def kill(self, owner_id: str) -> None:
        """Kill a process."""
        process = self.processes.pop(owner_id)
        process.kill()
        process.communicate()

    def journal(self) -> list[list[object]]:
        """Return the complete lines of the journal: owner id, what happened, and its details."""
        path = self._place / JOURNAL
        if not path.exists():
            return []
        text = path.read_text()
        whole = text[: text.rfind("\n") + 1]  # the last line may be incomplete
        return [json.loads(line) for line in whole.splitlines()]

    @property
    def line_count(self) -> int:
        """Return the number of lines in the journal, without parsing them."""
        path = self._place / JOURNAL
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def numbers(self, what: str) -> list[int]:
        """Return the sequence numbers of the lines of one kind."""
        return [int(str(facts[3])) for facts in self.journal() if facts[1] == what]

    def places(self) -> list[tuple[str, int]]:
        """Return partition and number of the handled events, in order."""
        return [
            (str(facts[2]), int(str(facts[3]))) for facts in self.journal() if facts[1] == "handled"
        ]

    def restart_ended(self) -> None:
        """Start every process again that has ended."""
        for owner_id, process in list(self.processes.items()):
            if process.poll() is not None:
                process.communicate()
                self.start(owner_id)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, and restart processes that end."""
        until_s = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < until_s, self.journal()[-5:]
            self.restart_ended()
            time.sleep(0.05)

    def until_lines(self, count: int) -> None:
        """Wait until the journal has so many lines."""
        self.until(lambda: self.line_count >= count)

    def end(self) -> None:
        """Kill all processes."""
        for owner_id in list(self.processes):
            self.kill(owner_id)

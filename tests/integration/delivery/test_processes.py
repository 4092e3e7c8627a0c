"""Real processes that die: of an event, of a signal, and in the middle of everything."""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventproc.emulator import EventHubsEmulator

WORKER = Path(__file__).with_name("worker.py")
KEYS = 10
PATIENCE_S = 50.0


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

    def publish(self, count: int, special: dict[int, str], partition_id: str = "0") -> None:
        """Publish events, each under one of a few keys; what is special says so in its body."""
        with EventHubProducerClient.from_connection_string(self._conn_str) as producer:
            batch = producer.create_batch(partition_id=partition_id)
            for number in range(count):
                event = EventData(special.get(number, "x"))
                event.properties = {"key": f"k{number % KEYS}"}
                batch.add(event)
            producer.send_batch(batch)

    def start(self, owner_id: str) -> None:
        """Start a process."""
        self.processes[owner_id] = subprocess.Popen(
            [
                sys.executable,
                str(WORKER),
                self._conn_str,
                self._store,
                owner_id,
                str(self._place / "story"),
                json.dumps(self._settings),
            ],
            stdin=subprocess.PIPE,
        )

    def stop(self, owner_id: str) -> None:
        """Let a process end in good order."""
        self.processes.pop(owner_id).communicate(timeout=30)

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
        return [json.loads(line) for line in path.read_text().splitlines()]

    def numbers(self, what: str) -> list[int]:
        """The events that this happened to."""
        return [int(str(facts[3])) for facts in self.story() if facts[1] == what]

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

    def end(self) -> None:
        """Leave nothing behind."""
        for owner_id in list(self.processes):
            self.kill(owner_id)


@pytest.fixture(name="make_fleet")
def _make_fleet(tmp_path) -> Iterator[Callable[..., Fleet]]:
    fleets: list[Fleet] = []
    with EventHubsEmulator({"hub": 1}) as emulator:

        def make(store: str = "", **settings: object) -> Fleet:
            fleets.append(Fleet(emulator, tmp_path, store, **settings))
            return fleets[-1]

        yield make
        for fleet in fleets:
            fleet.end()


def test_an_event_that_kills_its_process_is_found_and_buried(make_fleet):
    """After four deaths it is in the dead letters, and everything else is handled."""
    fleet = make_fleet()
    fleet.publish(150, {40: "die", 100: "fail"})
    fleet.start("a")
    fleet.until(lambda: len(set(fleet.numbers("handled"))) == 148)
    fleet.stop("a")

    assert fleet.numbers("died") == [40] * 4
    assert [facts[2:] for facts in fleet.story() if facts[1] == "buried"] == [
        ["0", 40, 3],
        ["0", 100, 2],
    ]
    assert set(fleet.numbers("handled")) == set(range(150)) - {40, 100}
    assert max(Counter(n for n in fleet.numbers("handled") if n > 40).values()) == 1


def test_a_poison_event_in_between_harms_nobody_else(make_fleet):
    """The rest is handled once, also while the partition changes hands in good order."""
    fleet = make_fleet(key_lanes=4)
    fleet.publish(2_000, {1_000: "fail"})
    fleet.start("a")
    fleet.until(lambda: len(fleet.numbers("handled")) > 400)
    fleet.start("b")
    fleet.stop("a")
    fleet.until(lambda: len(fleet.numbers("handled")) >= 1_999)
    fleet.stop("b")
    counts = Counter(fleet.numbers("handled"))

    assert set(counts) == set(range(2_000)) - {1_000}
    assert set(counts.values()) == {1}
    assert fleet.numbers("buried") == [1_000]


@pytest.fixture(name="store", params=["sqlite", "azurite"])
def _store(request) -> str:
    if request.param == "sqlite":
        return ""
    return f"{request.getfixturevalue('container')} {request.getfixturevalue('storage')}"


def test_lanes_keep_their_keys_in_order_through_kills(make_fleet, store):
    """Nothing is lost, and whoever takes over repeats only what was under way or not stored."""
    fleet = make_fleet(store=store, key_lanes=4)
    fleet.publish(2_000, {})
    rng = random.Random(7)
    for owner_id in ("a", "b"):
        fleet.start(owner_id)
    for _ in range(2):
        so_far = len(fleet.numbers("handled"))
        fleet.until(lambda so_far=so_far: len(fleet.numbers("handled")) > so_far + 300)
        owner_id = rng.choice(["a", "b"])
        fleet.kill(owner_id)
        fleet.start(owner_id)
    fleet.until(lambda: len(set(fleet.numbers("handled"))) == 2_000)
    handled = fleet.numbers("handled")

    assert set(handled) == set(range(2_000))
    for key in range(KEYS):
        newest = -1
        for number in (n for n in handled if n % KEYS == key):
            assert number <= newest + KEYS  # None is passed over; after a kill some come again.
            newest = max(newest, number)

"""A group of processors of every SDK, through joins, stops, kills and freezes."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from azure.eventhub import EventData, EventHubProducerClient
from azure.storage.blob import ContainerClient

from eventproc.emulator import EventHubsEmulator, HubConfiguration
from eventproc.testing import Azurite

from .ledger import Event, History, judged
from .members import SDKS, Member, Place

PARTITION_COUNT = 8
MEMBERS_MAX = 7
INTERVAL_S = 1.0
EXPIRATION_S = 12.0
FREEZE_S = 2 * EXPIRATION_S
BETWEEN_FAULTS_S = 6.0
SETTLED_MAX_S = 120.0
QUIET_S = 3 * EXPIRATION_S
HUB, GROUP = "orders", "interop"


def mixed(seconds: float, rng: Random, say: Callable[[str], None]) -> list[str]:
    """Run a group for a time, then let it rest; return what is wrong."""
    host = "127." + ".".join(str(random.randint(2, 250)) for _ in range(3))
    hubs = [HubConfiguration(HUB, PARTITION_COUNT, (GROUP,))]
    with EventHubsEmulator(hubs, host=host, port=5672) as emulator, Azurite() as azurite:
        with ContainerClient.from_connection_string(azurite.connection_string, "group") as box:
            box.create_container()
        place = Place(
            emulator.connection_string.replace(":5672", ""),
            HUB,
            GROUP,
            azurite.connection_string,
            "group",
            INTERVAL_S,
            EXPIRATION_S,
        )
        group = MixedGroup(place, rng, say)
        publishing = Publishing(emulator.connection_string)
        try:
            group.start()
            end_s = time.monotonic() + seconds
            while time.monotonic() < end_s:
                group.suffer()
            wrong = group.rest()
            publishing.end()
            published = {
                (partition_id, event.sequence_number)
                for partition_id in emulator.partition_ids(HUB)
                for event in emulator.events(HUB, partition_id)
            }
            group.until_handled(published)
            wrong += group.stop()
        finally:
            publishing.end()
            group.kill()
        more, figures = judged(published, group.histories())
        say(", ".join(f"{name} {count}" for name, count in (group.faults + figures).items()))
        return wrong + more


class Publishing:
    """A thread that sends an event to every partition, ten times a second."""

    def __init__(self, connection: str) -> None:
        self._connection = connection
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        client = EventHubProducerClient.from_connection_string(self._connection, eventhub_name=HUB)
        with client:
            while not self._is_over.wait(0.1):
                for partition_id in range(PARTITION_COUNT):
                    client.send_event(EventData(b"order"), partition_id=str(partition_id))

    def end(self) -> None:
        """Stop, after the event that is being sent."""
        self._is_over.set()
        self._thread.join()


class MixedGroup:
    """The members of the group, those that are gone too."""

    def __init__(self, place: Place, rng: Random, say: Callable[[str], None]) -> None:
        self.faults: Counter[str] = Counter()
        self._place = place
        self._rng = rng
        self._say = say
        self._members: list[Member] = []
        self._gone: list[Member] = []
        self._wrong: list[str] = []

    def start(self) -> None:
        """Start one member of each SDK."""
        for sdk in SDKS:
            self._join(sdk)

    def _join(self, sdk: str) -> None:
        number = len(self._members) + len(self._gone)
        self._members.append(Member(sdk, number, self._place))
        self._say(f"{self._members[-1].name} joins")

    def suffer(self) -> None:
        """Let one fault happen, and some time pass."""
        time.sleep(BETWEEN_FAULTS_S)
        present = {member.sdk for member in self._members}
        absent = [sdk for sdk in SDKS if sdk not in present]
        faults = ["join"] if absent else ["join", "leave", "kill", "freeze", "deploy"]
        fault = self._rng.choice(faults if len(self._members) < MEMBERS_MAX else faults[1:])
        self.faults[fault] += 1
        if fault == "join":
            self._join(self._rng.choice(absent or SDKS))
            return
        member = self._rng.choice(self._members)
        self._say(f"{fault}: {member.name}")
        if fault == "freeze":
            member.freeze(FREEZE_S)
            return
        self._members.remove(member)
        self._gone.append(member)
        if fault == "kill":
            member.kill()
        else:
            self._wrong += self._stop(member)
        if fault == "deploy":
            self._join(member.sdk)

    def rest(self) -> list[str]:
        """Wait until shares are even; return what moves after that."""
        until_s = time.monotonic() + SETTLED_MAX_S
        since_s, known = time.monotonic(), self._shares()
        while time.monotonic() - since_s < EXPIRATION_S or not self._is_even():
            if time.monotonic() > until_s:
                return [f"shares are not even after {SETTLED_MAX_S:.0f} s: {self._shares()}"]
            time.sleep(0.5)
            if self._shares() != known:
                since_s, known = time.monotonic(), self._shares()
        self._say(f"settled: { {name: len(owned) for name, owned in known.items()} }")
        until_s, moves = time.monotonic() + QUIET_S, list[str]()
        while time.monotonic() < until_s:
            time.sleep(0.5)
            if self._shares() != known:
                moves.append(f"moved at rest: {known} to {self._shares()}")
                known = self._shares()
        return moves

    def _shares(self) -> dict[str, set[str]]:
        return {member.name: member.owned() for member in self._members}

    def _is_even(self) -> bool:
        """Whether each partition has one holder, and no share is two above another.

        A spread of two stays if Python's processors have the fewest: they steal only below the
        floor.
        """
        shares = self._shares()
        counts = [len(owned) for owned in shares.values()]
        return sum(counts) == PARTITION_COUNT and max(counts) - min(counts) <= 2

    def until_handled(self, published: set[Event]) -> None:
        """Wait until every event was handled, or no more can be expected."""
        until_s = time.monotonic() + 2 * EXPIRATION_S
        while time.monotonic() < until_s:
            handled = {
                (line["handled"], line["sequence_number"])
                for member in [*self._members, *self._gone]
                for line in [*member.said]
                if "handled" in line
            }
            if published <= handled:
                return
            time.sleep(0.5)

    def _stop(self, member: Member) -> list[str]:
        """Stop a member; return a complaint if it is ours and does not end by itself.

        One of another SDK is counted, and killed.
        """
        if member.stop():
            return []
        self._say(f"{member.name} did not stop, and is killed")
        self.faults["hung_stop"] += 1
        return [f"{member.name} did not stop"] if member.sdk == "ours" else []

    def stop(self) -> list[str]:
        """Stop every member; return those of ours that did not end, now or before."""
        while self._members:
            self._gone.append(self._members.pop())
            self._wrong += self._stop(self._gone[-1])
        return self._wrong

    def kill(self) -> None:
        """End every process that is left."""
        for member in self._members:
            member.kill()

    def histories(self) -> Sequence[History]:
        """Return what every member did."""
        return [
            History(member.name, [*member.said], member.harmed_s)
            for member in [*self._members, *self._gone]
        ]

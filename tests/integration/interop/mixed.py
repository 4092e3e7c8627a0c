"""Groups of processors of every SDK, through joins, stops, kills and freezes.

Two groups read one hub. In one, every member polls each second and soon takes a silent one for
dead. In the other, each member has its SDK's own defaults. They are not one group, because the
rules of ``docs/operations.md`` forbid it: members that take others for dead after 12 s would take
those for dead that renew every 30 s.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

from azure.eventhub import EventData, EventHubProducerClient
from azure.storage.blob import ContainerClient

from eventproc.emulator import EventHubsEmulator, HubConfiguration
from eventproc.testing import Azurite

from .ledger import Event, History, judged
from .members import SDKS, Member, Place

PARTITION_COUNT = 8
HUB = "orders"


@dataclass(frozen=True)
class Pace:
    """How often the members of a group poll, and how often faults befall them."""

    group: str
    interval_s: float
    """Zero: each SDK's default, and its default expiration."""

    expiration_s: float
    freeze_s: float
    """Longer than the shortest expiration in the group."""

    between_faults_s: float
    members_max: int
    still_s: float
    """Shares are settled when they are even and have not changed for this long, more than the
    longest interval in the group."""

    settled_max_s: float
    quiet_s: float
    """How long nothing may move then: at least the longest expiration in the group."""

    @property
    def rest_s(self) -> float:
        """How long before the end the faults end."""
        return self.still_s * 2 + self.quiet_s


SHORT = Pace(
    "short",
    interval_s=1,
    expiration_s=12,
    freeze_s=24,
    between_faults_s=6,
    members_max=7,
    still_s=12,
    settled_max_s=120,
    quiet_s=36,
)
DEFAULTS = Pace(
    "defaults",
    interval_s=0,
    expiration_s=0,
    freeze_s=75,
    between_faults_s=12,
    members_max=6,
    still_s=45,
    settled_max_s=300,
    quiet_s=185,
)
PACES = {pace.group: pace for pace in (SHORT, DEFAULTS)}


def mixed(
    seconds: float, seed: int, paces: Sequence[Pace], say: Callable[[str], None]
) -> list[str]:
    """Run a group of each pace, and let it rest at the end; return what is wrong."""
    host = "127." + ".".join(str(random.randint(2, 250)) for _ in range(3))
    hubs = [HubConfiguration(HUB, PARTITION_COUNT, tuple(pace.group for pace in paces))]
    with (
        EventHubsEmulator(hubs, host=host, port=5672) as emulator,
        Azurite() as azurite,
        ThreadPoolExecutor() as threads,
    ):
        with ContainerClient.from_connection_string(azurite.connection_string, "groups") as box:
            box.create_container()
        connection = emulator.connection_string.replace(":5672", "")
        groups = [
            MixedGroup(
                Place(
                    connection,
                    HUB,
                    pace.group,
                    azurite.connection_string,
                    "groups",
                    pace.interval_s,
                    pace.expiration_s,
                ),
                pace,
                Random(f"{seed} {pace.group}"),
                say,
            )
            for pace in paces
        ]
        publishing = Publishing(emulator.connection_string)
        try:
            end_s = time.monotonic() + seconds
            [*threads.map(lambda group: group.live(end_s), groups)]
            publishing.end()
            published = {
                (partition_id, event.sequence_number)
                for partition_id in emulator.partition_ids(HUB)
                for event in emulator.events(HUB, partition_id)
            }
            return [
                f"{pace.group}: {line}"
                for pace, wrong in zip(
                    paces, threads.map(lambda group: group.end(published), groups), strict=True
                )
                for line in wrong
            ]
        finally:
            publishing.end()
            for group in groups:
                group.kill()


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

    def __init__(self, place: Place, pace: Pace, rng: Random, say: Callable[[str], None]) -> None:
        self._faults: Counter[str] = Counter()
        self._place = place
        self._pace = pace
        self._rng = rng
        self._say = lambda line: say(f"{pace.group}: {line}")
        self._members: list[Member] = []
        self._gone: list[Member] = []
        self._wrong: list[str] = []

    def live(self, end_s: float) -> None:
        """Let faults happen, then wait until shares are even; after that nothing may move."""
        for sdk in SDKS:
            self._join(sdk)
        while time.monotonic() < end_s - self._pace.rest_s:
            self._suffer()
        self._wrong += self._rest()

    def end(self, published: set[Event]) -> list[str]:
        """Stop every member when it has handled everything; return what is wrong."""
        self._until_handled(published)
        while self._members:
            self._gone.append(self._members.pop())
            self._stop(self._gone[-1])
        wrong, figures, directions = judged(published, self._histories())
        self._say(f"faults: {_told(self._faults)}")
        self._say(_told(figures))
        self._say(f"positions taken over: {_told(directions)}")
        return [*self._wrong, *wrong]

    def kill(self) -> None:
        """End every process that is left."""
        for member in self._members:
            member.kill()

    def _join(self, sdk: str) -> None:
        number = len(self._members) + len(self._gone)
        self._members.append(Member(sdk, number, self._place))
        self._say(f"{self._members[-1].name} joins")

    def _suffer(self) -> None:
        time.sleep(self._pace.between_faults_s)
        present = {member.sdk for member in self._members}
        absent = [sdk for sdk in SDKS if sdk not in present]
        faults = ["join"] if absent else ["join", "leave", "kill", "freeze", "deploy"]
        is_full = len(self._members) >= self._pace.members_max
        fault = self._rng.choice(faults[1:] if is_full else faults)
        self._faults[fault] += 1
        if fault == "join":
            self._join(self._rng.choice(absent or SDKS))
            return
        member = self._rng.choice(self._members)
        self._say(f"{fault}: {member.name}")
        if fault == "freeze":
            member.freeze(self._pace.freeze_s)
            return
        self._members.remove(member)
        self._gone.append(member)
        if fault == "kill":
            member.kill()
        else:
            self._stop(member)
        if fault == "deploy":
            self._join(member.sdk)

    def _rest(self) -> list[str]:
        until_s = time.monotonic() + self._pace.settled_max_s
        since_s, known = time.monotonic(), self._shares()
        while time.monotonic() - since_s < self._pace.still_s or not self._is_even():
            if time.monotonic() > until_s:
                return [f"shares are not even after {self._pace.settled_max_s:.0f} s: {known}"]
            time.sleep(0.5)
            if self._shares() != known:
                since_s, known = time.monotonic(), self._shares()
        self._say(f"settled: { {name: len(owned) for name, owned in known.items()} }")
        until_s, moves = time.monotonic() + self._pace.quiet_s, list[str]()
        while time.monotonic() < until_s:
            time.sleep(0.5)
            if self._shares() != known:
                moves.append(f"moved at rest: {known} to {self._shares()}")
                known = self._shares()
        return moves

    def _shares(self) -> dict[str, set[str]]:
        return {member.name: member.owned() for member in self._members}

    def _is_even(self) -> bool:
        """Whether each partition has one holder, and shares differ by one at most.

        Python's processors steal only if they have less than the mean, rounded down. So they may
        stay at this while others have two more.
        """
        shares = {member: len(member.owned()) for member in self._members}
        least, most = min(shares.values()), max(shares.values())
        return (
            sum(shares.values()) == PARTITION_COUNT
            and least >= PARTITION_COUNT // len(shares)
            and (
                most - least <= 1
                or all(member.sdk == "python" for member in shares if shares[member] == least)
            )
        )

    def _until_handled(self, published: set[Event]) -> None:
        """Wait until every event was handled, or no more can be expected."""
        until_s = time.monotonic() + self._pace.freeze_s
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

    def _stop(self, member: Member) -> None:
        """Stop a member; one that does not end by itself is wrong if it is ours.

        One of another SDK is counted, and killed.
        """
        if member.stop():
            return
        self._say(f"{member.name} did not stop, and is killed")
        self._faults["hung_stop"] += 1
        if member.sdk == "ours":
            self._wrong.append(f"{member.name} did not stop")

    def _histories(self) -> Sequence[History]:
        return [
            History(member.name, [*member.said], member.harmed_s)
            for member in [*self._members, *self._gone]
        ]


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())

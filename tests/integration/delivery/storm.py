"""Real processes of ``eventproc run`` in a storm: killed, frozen, replaced, with wall clocks that
are off, over a store that goes away; and whether all of it did no harm."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from azure.eventhub import EventHubProducerClient

from eventproc.emulator import EventHubsEmulator
from tests.integration.delivery import verdict
from tests.integration.delivery.fleet import send
from tests.integration.delivery.storm_fleet import CHECKPOINT_S, EXPIRATION_S, StormFleet
from tests.integration.delivery.weather import Store

PARTITIONS: Final = 8
PROCESSES: Final = ("a", "b", "c", "d")
RATE: Final = 20
"""Events that each partition gets in a second."""

CALM: Final = 100
"""Events that each partition gets when the storm is over."""

STORED_WITHIN_S: Final = CHECKPOINT_S + 2.5
"""Two cores, four processes, and their stores: a write may wait for its turn."""

BLOWS: Final = ("kill", "kill", "freeze", "freeze", "outage", "exchange", "exchange")
BLOW_EVERY_S: Final = (1.0, 6.0)
FREEZE_S: Final = (0.5, 2 * EXPIRATION_S)
OUTAGE_S: Final = (0.5, 1.5 * EXPIRATION_S)
BACK_AFTER_S: Final = (0.0, 1.5 * EXPIRATION_S)
CLOCKS_OFF_S: Final = (0.0, 0.0, 600.0, -600.0)

PYTHON_STARTS_S: Final = 1.0
"""Before Python itself has started no program can take a signal."""

TICK_S: Final = 0.1
PATIENCE_S: Final = 180.0
PROGRESS_EVERY_S: Final = 5.0


class Storm:
    """Publishes, strikes, and lets things happen later, until it is over."""

    def __init__(
        self,
        fleet: StormFleet,
        store: Store,
        producer: EventHubProducerClient,
        rng: Random,
        say: Callable[[str], None],
    ) -> None:
        """Nothing happens yet."""
        self._fleet = fleet
        self._store = store
        self._producer = producer
        self._rng = rng
        self._say = say
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._begun_s = self._told_s = time.monotonic()
        self._published = 0
        self._outage_since_s: float | None = None
        self._restarts = True

    def rage(self, seconds: float) -> None:
        """Let it storm for so long."""
        for owner_id in PROCESSES:
            self._start(owner_id)
        over_s = time.monotonic() + seconds
        strike_at_s = time.monotonic() + EXPIRATION_S
        while (now_s := time.monotonic()) < over_s:
            self._publish_until(round((now_s - self._begun_s) * RATE))
            if now_s >= strike_at_s:
                strike_at_s = now_s + self._rng.uniform(*BLOW_EVERY_S)
                self._strike(self._rng.choice(BLOWS))
            self._tick()
        self._wait("the last blow is over", lambda: not self._later and not self._is_any_stopping)
        self._restarts = False
        for owner_id in PROCESSES:
            self._start(owner_id)

    def calm(self) -> dict[str, int]:
        """See everything handled; let processes come and go; return where the calm began."""
        self._settle()
        begun_at = self._published
        self._start("calm")
        self._publish_until(begun_at + CALM)
        self._fleet.ask(PROCESSES[0])
        self._settle()
        for owner_id in self._fleet.ready():
            self._fleet.ask(owner_id)
        self._wait("all have stopped", lambda: not self._fleet.runs)
        return {str(number): begun_at for number in range(PARTITIONS)}

    @property
    def published(self) -> dict[str, int]:
        """How many events each partition has."""
        return {str(number): self._published for number in range(PARTITIONS)}

    @property
    def _is_any_stopping(self) -> bool:
        return any(run.asked_s is not None for run in self._fleet.runs.values())

    # --- what happens ----------------------------------------------------------------------------

    def _strike(self, kind: str) -> None:
        ready = self._fleet.ready()
        if kind == "outage":
            if self._outage_since_s is None:
                self._begin_outage()
        elif ready:
            owner_id = self._rng.choice(ready)
            if kind == "kill":
                self._fleet.kill(owner_id)
                self._after(BACK_AFTER_S, lambda: self._start(owner_id))
            elif kind == "freeze":
                self._fleet.freeze(owner_id)
                self._after(FREEZE_S, lambda: self._fleet.thaw(owner_id))
            elif self._fleet.age_s(owner_id) > PYTHON_STARTS_S:
                self._fleet.ask(owner_id)

    def _begin_outage(self) -> None:
        self._outage_since_s = time.monotonic()
        self._store.begin_outage(is_silent=self._rng.random() < 0.5)
        self._after(OUTAGE_S, self._end_outage)

    def _end_outage(self) -> None:
        self._store.end_outage()
        assert self._outage_since_s is not None
        self._fleet.outage_over(self._outage_since_s)
        self._outage_since_s = None

    def _start(self, owner_id: str) -> None:
        if owner_id not in self._fleet.runs:
            self._fleet.start(owner_id, self._rng.choice(CLOCKS_OFF_S))

    def _after(self, within_s: tuple[float, float], do: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + self._rng.uniform(*within_s), do))

    def _publish_until(self, count: int) -> None:
        numbers = range(self._published, count)
        if numbers:
            for partition in range(PARTITIONS):
                send(self._producer, numbers, str(partition))
            self._published = count

    def _tick(self) -> None:
        now_s = time.monotonic()
        due = [do for at_s, do in self._later if at_s <= now_s]
        self._later = [(at_s, do) for at_s, do in self._later if at_s > now_s]
        for do in due:
            do()
        for owner_id in self._fleet.reap():
            if self._restarts:
                self._after(BACK_AFTER_S, partial(self._start, owner_id))
        if now_s - self._told_s >= PROGRESS_EVERY_S:
            self._told_s = now_s
            self._tell(now_s)
        time.sleep(TICK_S)

    def _settle(self) -> None:
        """Wait until everything is handled, its position is stored, and nobody moves."""
        self._wait("everything is handled", self._is_all_handled)
        quiet_s = time.monotonic() + 2 * EXPIRATION_S
        self._wait("the group is at rest", lambda: time.monotonic() > quiet_s)

    def _is_all_handled(self) -> bool:
        if self._fleet.told_count < self._published * PARTITIONS:
            return False
        return not list(verdict.lost(self._fleet.handled(), self.published))

    def _wait(self, until_what: str, is_so: Callable[[], bool]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > until_s:
                raise TimeoutError(f"{PATIENCE_S:.0f} s were not enough until {until_what}")
            self._tick()

    def _tell(self, now_s: float) -> None:
        struck = Counter(blow.kind for blow in self._fleet.blows)
        blows = ", ".join(f"{count} {kind}" for kind, count in sorted(struck.items()))
        ends = dict(Counter(end.code for end in self._fleet.exits))
        self._say(
            f"{now_s - self._begun_s:4.0f} s: {self._published * PARTITIONS} published, "
            f"{self._fleet.told_count} handled; {blows or 'no blow yet'}; exit codes {ends}; "
            f"at work: {' '.join(self._fleet.ready())}"
        )


def violations(
    fleet: StormFleet, published: dict[str, int], calm_from: dict[str, int]
) -> Iterator[str]:
    """What should not have happened."""
    handled = fleet.handled()
    yield from verdict.lost(handled, published)
    yield from verdict.passed_over(handled)
    yield from verdict.unexplained(
        handled, fleet.blows, stored_within_s=STORED_WITHIN_S, lasts_s=EXPIRATION_S
    )
    yield from verdict.again_in_calm(handled, calm_from)
    yield from verdict.odd_exits(fleet.exits, fleet.blows)
    yield from verdict.bad_lines(fleet.outputs())


def storm(
    store: Store, place: Path, *, seconds: float, rng: Random, say: Callable[[str], None]
) -> list[str]:
    """Let it storm for so long, and return what should not have happened."""
    with EventHubsEmulator({"hub": PARTITIONS}) as emulator:
        hub = emulator.connection_string_for("hub")
        fleet = StormFleet(emulator, place, store, pace_s=0.5 / RATE / PARTITIONS)
        store.open()
        try:
            with EventHubProducerClient.from_connection_string(hub) as producer:
                weather = Storm(fleet, store, producer, rng, say)
                weather.rage(seconds)
                calm_from = weather.calm()
            found = list(violations(fleet, weather.published, calm_from))
        finally:
            fleet.end()
            store.close()
    handled = fleet.handled()
    again = len(handled) - len({(one.partition_id, one.number) for one in handled})
    blows = Counter(blow.kind for blow in fleet.blows)
    say(
        f"{len(handled) - again} events, {again} of them came again; {dict(blows)}; processes by "
        f"how far their clock was off: {dict(fleet.started)}; exit codes "
        f"{dict(Counter(end.code for end in fleet.exits))}"
    )
    return found

"""A storm: real processes of ``eventproc run`` under faults, and checks of what they did.

Processes are killed, frozen and replaced, their wall clocks are off, and the store has outages; a
hub of Kafka has some, too.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from eventproc._command.arguments.access import HubAccess, StorageAccess
from eventproc._command.arguments.sources import make_source
from eventproc._command.arguments.stores import open_store
from eventproc.models import ConsumerGroup
from tests.integration.delivery import storm_checks
from tests.integration.delivery.environment import Store
from tests.integration.delivery.hub import NAME, PARTITIONS, Hub
from tests.integration.delivery.storm_fleet import CHECKPOINT_S, EXPIRATION_S, StormFleet

PROCESSES: Final = ("a", "b", "c", "d")
RATE: Final = 20
"""Events published to each partition in a second."""

CALM: Final = 100
"""Events published to each partition after the faults."""

STORED_WITHIN_S: Final = CHECKPOINT_S + 2.5
"""More than the checkpoint interval: on two cores, a write of one of four processes may wait."""

FAULTS: Final = ("kill", "kill", "freeze", "freeze", "outage", "replace", "replace")
FAULTS_OF_HUBS: Final = ("hub", "hub")
FAULT_EVERY_S: Final = (1.0, 6.0)
FREEZE_S: Final = (0.5, 2 * EXPIRATION_S)
OUTAGE_S: Final = (0.5, 1.5 * EXPIRATION_S)
RESTART_AFTER_S: Final = (0.0, 1.5 * EXPIRATION_S)
CLOCKS_OFF_S: Final = (0.0, 0.0, 600.0, -600.0)

PYTHON_STARTS_S: Final = 1.0
"""Before Python itself has started no program can handle a signal."""

TICK_S: Final = 0.1
TIMEOUT_S: Final = 180.0
PROGRESS_EVERY_S: Final = 5.0


class Storm:
    """Publishes events and injects faults, now and later, until the storm is over."""

    def __init__(
        self,
        fleet: StormFleet,
        store: Store,
        hub: Hub,
        rng: Random,
        say: Callable[[str], None],
    ) -> None:
        """Inject nothing yet."""
        self._fleet = fleet
        self._store = store
        self._hub = hub
        self._rng = rng
        self._say = say
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._begun_s = self._reported_s = time.monotonic()
        self._published = 0
        self._faults = FAULTS + FAULTS_OF_HUBS * hub.has_outages
        self._outages: dict[str, float] = {}
        """When the outage of the store or the hub that lasts now began, by its kind."""

        self._restarts = True

    def inject_faults(self, seconds: float) -> None:
        """Inject faults for so many seconds, then restart all processes."""
        for owner_id in PROCESSES:
            self._start(owner_id)
        over_s = time.monotonic() + seconds
        fault_at_s = time.monotonic() + EXPIRATION_S
        while (now_s := time.monotonic()) < over_s:
            self._publish_until(round((now_s - self._begun_s) * RATE))
            if now_s >= fault_at_s:
                fault_at_s = now_s + self._rng.uniform(*FAULT_EVERY_S)
                self._inject(self._rng.choice(self._faults))
            self._tick()
        self._wait(
            "the last fault has ended",
            lambda: not self._later and not self._is_any_stopping,
        )
        self._restarts = False
        for owner_id in PROCESSES:
            self._start(owner_id)

    def calm(self) -> dict[str, int]:
        """Start and stop processes without faults; return the first number of this phase by
        partition."""
        self._settle()
        begun_at = self._published
        self._start("calm")
        self._publish_until(begun_at + CALM)
        self._fleet.terminate(PROCESSES[0])
        self._settle()
        for owner_id in self._fleet.ready():
            self._fleet.terminate(owner_id)
        self._wait("all have stopped", lambda: not self._fleet.runs)
        return {str(number): begun_at for number in range(PARTITIONS)}

    @property
    def published(self) -> dict[str, int]:
        """Return how many events each partition has."""
        return {str(number): self._published for number in range(PARTITIONS)}

    @property
    def _is_any_stopping(self) -> bool:
        return any(run.terminated_s is not None for run in self._fleet.runs.values())

    # --- faults ----------------------------------------------------------------------------------

    def _inject(self, kind: str) -> None:
        ready = self._fleet.ready()
        if kind in ("outage", "hub"):
            if kind not in self._outages:
                self._begin_outage(kind, self._store if kind == "outage" else self._hub)
        elif ready:
            owner_id = self._rng.choice(ready)
            if kind == "kill":
                self._fleet.kill(owner_id)
                self._after(RESTART_AFTER_S, lambda: self._start(owner_id))
            elif kind == "freeze":
                self._fleet.freeze(owner_id)
                self._after(FREEZE_S, lambda: self._fleet.thaw(owner_id))
            elif self._fleet.age_s(owner_id) > PYTHON_STARTS_S:
                self._fleet.terminate(owner_id)

    def _begin_outage(self, kind: str, server: Store | Hub) -> None:
        self._outages[kind] = time.monotonic()
        server.begin_outage(is_silent=self._rng.random() < 0.5)
        self._after(OUTAGE_S, partial(self._end_outage, kind, server))

    def _end_outage(self, kind: str, server: Store | Hub) -> None:
        server.end_outage()
        self._fleet.end_outage(kind, self._outages.pop(kind))

    def _start(self, owner_id: str) -> None:
        if owner_id not in self._fleet.runs:
            self._fleet.start(owner_id, self._rng.choice(CLOCKS_OFF_S))

    def _after(self, within_s: tuple[float, float], action: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + self._rng.uniform(*within_s), action))

    def _publish_until(self, count: int) -> None:
        numbers = range(self._published, count)
        if numbers:
            self._hub.publish(numbers)
            self._published = count

    def _tick(self) -> None:
        now_s = time.monotonic()
        due = [action for at_s, action in self._later if at_s <= now_s]
        self._later = [(at_s, action) for at_s, action in self._later if at_s > now_s]
        for action in due:
            action()
        for owner_id in self._fleet.reap():
            if self._restarts:
                self._after(RESTART_AFTER_S, partial(self._start, owner_id))
        if now_s - self._reported_s >= PROGRESS_EVERY_S:
            self._reported_s = now_s
            self._report(now_s)
        time.sleep(TICK_S)

    def _settle(self) -> None:
        """Wait until everything is handled and checkpointed, and no partition moves."""
        self._wait("everything is handled", self._is_all_handled)
        quiet_s = time.monotonic() + 2 * EXPIRATION_S
        self._wait("the group is at rest", lambda: time.monotonic() > quiet_s)

    def _is_all_handled(self) -> bool:
        if self._fleet.line_count < self._published * PARTITIONS:
            return False
        return not list(storm_checks.lost_events(self._fleet.handled(), self.published))

    def _wait(self, until_what: str, condition: Callable[[], bool]) -> None:
        until_s = time.monotonic() + TIMEOUT_S
        while not condition():
            if time.monotonic() > until_s:
                raise TimeoutError(f"{TIMEOUT_S:.0f} s were not enough until {until_what}")
            self._tick()

    def _report(self, now_s: float) -> None:
        counts = Counter(fault.kind for fault in self._fleet.faults)
        faults = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        ends = dict(Counter(end.code for end in self._fleet.exits))
        self._say(
            f"{now_s - self._begun_s:4.0f} s: {self._published * PARTITIONS} published, "
            f"{self._fleet.line_count} handled; {faults or 'no fault yet'}; exit codes {ends}; "
            f"running: {' '.join(self._fleet.ready())}"
        )


def violations(
    fleet: StormFleet, published: dict[str, int], calm_from: dict[str, int]
) -> Iterator[str]:
    """Yield all violations of a storm."""
    handled = fleet.handled()
    yield from storm_checks.lost_events(handled, published)
    yield from storm_checks.out_of_order(handled)
    yield from storm_checks.unexplained_repeats(
        handled, fleet.faults, stored_within_s=STORED_WITHIN_S, lasts_s=EXPIRATION_S
    )
    yield from storm_checks.repeats_in_calm(handled, calm_from)
    yield from storm_checks.wrong_exit_codes(fleet.exits, fleet.faults)
    yield from storm_checks.error_lines(fleet.outputs())


async def stored_states(store: Store, hub: Hub) -> dict[str, bytes | None]:
    """Read the state of each partition."""
    source = make_source(HubAccess(connection_string=hub.env["EVENTPROC_CONNECTION_STRING"]), NAME)
    group = ConsumerGroup(
        fully_qualified_namespace=source.fully_qualified_namespace,
        eventhub_name=source.eventhub_name,
        name="$Default",
    )
    secret = store.env.get("EVENTPROC_STORAGE_CONNECTION_STRING", "")
    async with open_store(store.spec, StorageAccess(storage_connection_string=secret)) as opened:
        ids = [str(number) for number in range(PARTITIONS)]
        found = {number: await opened.read_checkpoint(group, number) for number in ids}
    return {number: None if one is None else one.state for number, one in found.items()}


def storm(
    hub: Hub,
    store: Store,
    place: Path,
    *,
    seconds: float,
    rng: Random,
    say: Callable[[str], None],
) -> list[str]:
    """Run a storm for so many seconds; return its violations."""
    fleet = StormFleet(hub, place, store, pace_s=0.5 / RATE / PARTITIONS)
    with ExitStack() as stack:
        for part in (hub, store):
            stack.callback(part.close)
            part.open()
        stack.callback(fleet.end)
        running = Storm(fleet, store, hub, rng, say)
        running.inject_faults(seconds)
        calm_from = running.calm()
        found = list(violations(fleet, running.published, calm_from))
        states = asyncio.run(stored_states(store, hub))
        found += storm_checks.wrong_states(states, running.published)
    handled = fleet.handled()
    again = len(handled) - len({(one.partition_id, one.number) for one in handled})
    faults = Counter(fault.kind for fault in fleet.faults)
    say(
        f"{len(handled) - again} events, and {again} repeats; {dict(faults)}; processes by the "
        f"shift of their clock: {dict(fleet.started)}; exit codes "
        f"{dict(Counter(end.code for end in fleet.exits))}"
    )
    return found

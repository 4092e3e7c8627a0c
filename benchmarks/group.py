"""A group of real processes: eventproc beside Azure's client with its blob store, in pairs of runs.

    python benchmarks/group.py                   # a table: both, and the ratio
    python benchmarks/group.py --rounds 3        # medians of three pairs
    python benchmarks/group.py --only backlog
    python benchmarks/group.py --only rest --partitions 32 --interval 10 --expiration 60 --rest 30
    python benchmarks/group.py --drop-in         # the same program on eventproc.compat
    python benchmarks/group.py --format json     # for programs
    python benchmarks/group.py --quick

The other side is ``EventHubConsumerClient.receive_batch`` for aio, with the
``BlobCheckpointStore`` of ``azure-eventhub-checkpointstoreblob-aio``. Both use the same emulator
and the same Azurite, and have the same interval, expiration, prefetch, batch size and checkpoint
policy; settings without a counterpart on the other side have their defaults.

- *backlog*: one process reads a full hub, reads each event's body, and stores its progress;
- *at rest*: a steady trickle (``--rate``), nothing changes: the time from publishing to the
  handler, processor time of the whole fleet, requests to storage;
- *start*, *join*, *stop*, *kill*: all start at once; one more joins; one is stopped; one is
  killed. Seconds until every partition is served by exactly one process and all shares are even;
  the longest time that an event waited for its handler; events that were handled again.
"""

import argparse
import signal
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Final

from azure.storage.blob import ContainerClient

from benchmarks._fleet import Episode, Fleet, Publisher, timed_event
from benchmarks._hub import emulator_with, fill
from benchmarks._member import Settings
from benchmarks._rows import Row, options, print_progress, print_rows
from benchmarks._summary import times_better
from eventproc.testing._azurite import Azurite

SIDES: Final = ("eventproc", "azure")
TIMEOUT_S: Final = 120.0

Measures = dict[str, float | None]
"""The results of one run of one side; the names are those of ``MEASURES``."""

MEASURES: Final[dict[str, tuple[str, bool]]] = {
    "backlog: throughput": ("events/s", True),
    "backlog: CPU time": ("us/event", False),
    "backlog: peak memory": ("MiB", False),
    "at rest: publish to handler, p50": ("ms", False),
    "at rest: publish to handler, p99": ("ms", False),
    "at rest: CPU time, all processes": ("% of a core", False),
    "at rest: requests to storage": ("a minute", False),
    "start: balanced after": ("s", False),
    "join: balanced after": ("s", False),
    "join: longest wait of an event": ("s", False),
    "join: handled again": ("events", False),
    "stop: balanced after": ("s", False),
    "stop: longest wait of an event": ("s", False),
    "stop: handled again": ("events", False),
    "kill: balanced after": ("s", False),
    "kill: longest wait of an event": ("s", False),
    "kill: handled again": ("events", False),
    "lost events": ("events", False),
}
"""The unit of each, and whether more is better."""


# --- measurements --------------------------------------------------------------------------------


def backlog(settings: Settings, partition_count: int, event_count: int) -> Measures:
    """Measure one process that reads a full hub."""
    fill(settings.hub, partition_count, event_count, lambda _: timed_event())
    fleet = Fleet(settings, partition_count)
    try:
        members = fleet.spawn(1)
        fleet.join(members)
        until_s = time.monotonic() + TIMEOUT_S
        while fleet.distinct() < event_count and time.monotonic() < until_s:
            time.sleep(0.05)
        assert fleet.first_batch is not None, "it handles something"
        seconds = fleet.last_batch[0] - fleet.first_batch[0]
        cpu_s = fleet.last_batch[1] - fleet.first_batch[1]
        return {
            "backlog: throughput": fleet.handled / seconds,
            "backlog: CPU time": 1e6 * cpu_s / fleet.handled,
            "backlog: peak memory": members[0].peak_mib(),
        }
    finally:
        fleet.end()


class FleetRun:
    """One side's fleet from its start to its end, under a steady trickle of events."""

    def __init__(self, settings: Settings, partition_count: int, events_per_s: float) -> None:
        self._settings = settings
        self._events_per_s = events_per_s
        self._partition_count = partition_count
        self._hold_s = 3 * settings.interval_s
        self._fleet = Fleet(settings, partition_count)
        self._measures: Measures = {}

    def run(self, process_count: int, rest_s: float, *, only_rest: bool) -> Measures:
        """Start all, rest, add one, stop one, kill one; return the measures."""
        fleet = self._fleet
        first, second = fleet.spawn(process_count), fleet.spawn(1)
        publisher = Publisher(self._settings.hub, self._partition_count, self._events_per_s)
        try:
            self._note("start", fleet.join(first))
            self._measure_rest(rest_s)
            if only_rest:
                return self._measures
            self._note("join", fleet.join(second))
            leaver, victim = first[0], first[1]
            episode = fleet.end_member(leaver, signal.SIGTERM)
            leaver.has_stopped.wait(TIMEOUT_S)
            fleet.leave(leaver)
            self._note("stop", episode)
            leaver.end()
            self._note("kill", fleet.end_member(victim, signal.SIGKILL))
            publisher.end()
            self._measures["lost events"] = self._lost(publisher.sent)
        finally:
            publisher.end()
            fleet.end()
        return self._measures

    def _note(self, what: str, episode: Episode) -> None:
        """Wait until the fleet is balanced again; note what that took."""
        self._fleet.wait_balanced(self._hold_s, TIMEOUT_S)
        print_progress(f"{self._settings.side}: {what}, balanced after {episode.balanced_after_s}")
        self._measures[f"{what}: balanced after"] = episode.balanced_after_s
        if what != "start":  # at the start, the oldest events had waited for the first process
            self._measures[f"{what}: longest wait of an event"] = max(episode.ages_ms) / 1e3
            self._measures[f"{what}: handled again"] = episode.redelivered

    def _measure_rest(self, seconds: float) -> None:
        """Measure the fleet while nothing changes."""
        fleet = self._fleet
        cpu_s = sum(member.cpu_s() for member in fleet.members)
        calls = fleet.calls().total()
        seen = len(fleet.episode.ages_ms)
        time.sleep(seconds)
        cpu_s = sum(member.cpu_s() for member in fleet.members) - cpu_s
        ages = sorted(fleet.episode.ages_ms[seen:])
        self._measures |= {
            "at rest: publish to handler, p50": ages[len(ages) // 2],
            "at rest: publish to handler, p99": ages[len(ages) * 99 // 100],
            "at rest: CPU time, all processes": 100 * cpu_s / seconds,
            "at rest: requests to storage": 60 * (fleet.calls().total() - calls) / seconds,
        }

    def _lost(self, sent: int) -> float:
        """Wait for events in flight; return how many events were not handled."""
        until_s = time.monotonic() + TIMEOUT_S
        while self._fleet.distinct() < sent and time.monotonic() < until_s:
            time.sleep(0.1)
        return sent - self._fleet.distinct()


# --- pairs ---------------------------------------------------------------------------------------


class Pairs:
    """Runs of both sides against the same two services."""

    def __init__(self, hubs: Mapping[str, str], storage: str, given: argparse.Namespace) -> None:
        self._hubs = hubs
        self._storage = storage
        self._given = given

    def settings(self, side: str, hub: str, *, is_timed: bool = True) -> Settings:
        """Return the settings, which are equal for both sides."""
        container = hub.lower()
        ContainerClient.from_connection_string(self._storage, container).create_container()
        return Settings(
            side="drop-in" if self._given.drop_in and side == "eventproc" else side,
            stores_at_close=self._given.drop_in,
            hub=self._hubs[hub],
            storage=self._storage,
            container=container,
            interval_s=self._given.interval,
            expiration_s=self._given.expiration,
            is_timed=is_timed,
        )

    def run(self, number: int) -> dict[str, Measures]:
        """Measure one side and then the other."""
        given = self._given
        found: dict[str, Measures] = {side: {} for side in SIDES}
        for side in SIDES if given.only in {None, "backlog"} else ():
            print_progress(f"{side}: backlog of {given.events:,} events")
            full = self.settings(side, f"{side}-full-{number}", is_timed=False)
            found[side] |= backlog(full, given.partitions, given.events)
        for side in SIDES if given.only != "backlog" else ():
            settings = self.settings(side, f"{side}-{number}")
            fleet_run = FleetRun(settings, given.partitions, given.rate)
            found[side] |= fleet_run.run(
                given.processes, given.rest, only_rest=given.only == "rest"
            )
        return found


def rows_of(runs: Sequence[dict[str, Measures]], settings: str) -> list[Row]:
    """Return a row for each measure: the median of each side, and how many times better ours is."""
    rows: list[Row] = []
    for measure, (unit, is_more_better) in MEASURES.items():
        sides: dict[str, float | None] = {}
        for side in SIDES:
            values = [run[side].get(measure) for run in runs]
            known = [value for value in values if value is not None]
            sides[side] = statistics.median(known) if len(known) == len(values) > 0 else None
        if all(measure not in run[side] for run in runs for side in SIDES):
            continue
        rows.append(
            {
                "settings": settings,
                "measure": measure,
                "unit": unit,
                **{side: _rounded(value) for side, value in sides.items()},
                "times_better": _ratio(sides, is_more_better=is_more_better),
            }
        )
    return rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _ratio(sides: Mapping[str, float | None], *, is_more_better: bool) -> float | None:
    ours, theirs = (sides[side] for side in SIDES)
    if ours is None or theirs is None:
        return None
    ratio = times_better(ours, theirs, is_more_better=is_more_better)
    return None if ratio is None else round(ratio, 2)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--only", choices=("backlog", "rest", "changes"))
    parser.add_argument(
        "--drop-in",
        action="store_true",
        help="our side is Azure's program with the imports of eventproc.compat; both store "
        "their progress at the close of a partition, too",
    )
    parser.add_argument("--rounds", type=int, default=1, help="pairs")
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--events", type=int, default=80_000, help="in the backlog")
    parser.add_argument("--rest", type=float, default=20.0, help="seconds at rest")
    parser.add_argument("--rate", type=float, default=100, help="events a second, if not full")
    parser.add_argument("--interval", type=float, default=2.0, help="load balancing, seconds")
    parser.add_argument("--expiration", type=float, default=12.0, help="of ownership, seconds")
    given = parser.parse_args()
    if given.quick:
        given.partitions, given.processes, given.events, given.rest = 4, 2, 4_000, 2.0
        given.interval, given.expiration = 0.5, 3.0
    names = [
        f"{side}-{kind}{n}" for side in SIDES for kind in ("", "full-") for n in range(given.rounds)
    ]
    hubs = dict.fromkeys(names, given.partitions)
    with emulator_with(hubs) as emulator, Azurite() as azurite:
        pairs = Pairs(emulator.connection_strings, azurite.connection_string, given)
        runs = [pairs.run(number) for number in range(given.rounds)]
    alike = f"interval {given.interval:g} s, expiration {given.expiration:g} s"
    title = (
        f"{given.partitions} partitions, {given.processes} processes, prefetch 300, batches of 300 "
        f"at most, progress stored every 5 s, {given.rate:g} events/s of 100 B"
    )
    print_rows(rows_of(runs, alike), given.format, title)


if __name__ == "__main__":
    main()

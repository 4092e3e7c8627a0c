"""Workers, handler threads and key concurrency: which of them makes which handler faster?

    python benchmarks/workers.py                      # five rounds
    python benchmarks/workers.py --only computes      # one kind of handler
    python benchmarks/workers.py --quick

The real command reads a backlog of four partitions from the emulator, with a store in SQLite. A
handler computes for about two milliseconds in Python for each event, or waits for five. Once every
partition is served, the events of some seconds are counted.

In a round the ways of a handler run one after another, and each is compared with *one process* of
the same round. *Times* are the medians of these ratios; *cores* is how many the handler's processes
had.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azure.eventhub import EventData

from benchmarks._hub import cpu_s_of, emulator_with, fill
from benchmarks._rows import Row, options, print_progress, print_rows

ROOT: Final = Path(__file__).parents[1]
PARTITIONS: Final = 4
KEYS: Final = 20
EVENTS: Final = 800_000
TIMEOUT_S: Final = 90
SETTLE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run one kind of handler."""

    handler: str
    name: str
    class_name: str
    arguments: Sequence[str] = ()
    process_count: int = 1
    report_every: int = 1


WORKERS: Final = ("--workers", "2")
LANES: Final = ("--key-concurrency", str(KEYS), "--key-property", "key")

WAYS: Final = (
    Way("computes", "one process", "Computing"),
    Way("computes", "handler threads", "ComputingInThreads"),
    Way("computes", "2 workers", "Computing", WORKERS, 2),
    Way("waits", "one process", "Waiting", report_every=5),
    Way("waits", "2 workers", "Waiting", WORKERS, 2, 5),
    Way("waits", "20 keys at once", "Waiting", LANES, 1, 50),
    Way("waits", "20 keys at once, 2 workers", "Waiting", (*LANES, *WORKERS), 2, 50),
    Way("waits, blocking", "one process", "WaitingInThreads", report_every=5),
    Way("waits, blocking", "2 workers", "WaitingInThreads", WORKERS, 2, 5),
    Way("waits, blocking", "20 keys at once", "WaitingInThreads", LANES, 1, 50),
)
"""The first way of each kind of handler is what the others are compared with."""


class Reports:
    """What the handlers have printed: how many events each process has handled."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._counts: dict[tuple[int, str], int] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def handled(self) -> int:
        """Return how many events were handled."""
        with self._lock:
            return sum(self._counts.values())

    def pids(self) -> set[int]:
        """Return the processes that have handled events."""
        with self._lock:
            return {pid for pid, _ in self._counts}

    def partitions(self) -> set[str]:
        """Return the partitions of which events were handled."""
        with self._lock:
            return {partition for _, partition in self._counts}

    def cpu_s(self) -> float:
        """Return the CPU time of these processes."""
        return sum(map(cpu_s_of, self.pids()))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            pid, partition, count = line.split()
            with self._lock:
                self._counts[int(pid), partition] = int(count)


def event(number: int) -> EventData:
    """Return an event with one of the keys."""
    made = EventData(b"x" * 100)
    made.properties = {"key": f"key-{number % KEYS}"}
    return made


@dataclass(frozen=True, slots=True)
class Figures:
    """What the processes of a way did."""

    rate: float
    """Events per second."""

    cores: float
    """How many cores were busy."""


def measure(way: Way, hub: str, seconds: float) -> Figures:
    """Start the processes of a way, and count what they handle once every partition is served."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "eventproc.cli", "run", "--store", f"sqlite:{folder}/db"),
                *(f"benchmarks._worker_handlers:{way.class_name}", *way.arguments),
                *("--interval", "2s", "--expiration", "60s", "--log-level", "error"),
            ],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ
            | {"EVENTPROC_CONNECTION_STRING": hub, "BENCH_REPORT_EVERY": str(way.report_every)},
        )
        try:
            return _measured(way, process, seconds)
        finally:
            while process.poll() is None:  # the second signal ends everything at once
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)


def _measured(way: Way, process: "subprocess.Popen[str]", seconds: float) -> Figures:
    reports = Reports(process)
    until_s = time.monotonic() + TIMEOUT_S
    while (len(reports.pids()), len(reports.partitions())) != (way.process_count, PARTITIONS):
        if time.monotonic() > until_s or process.poll() is not None:
            raise SystemExit(f"{way.handler}, {way.name}: it did not begin")
        time.sleep(0.05)
    time.sleep(SETTLE_S)
    handled, used_s, begun_s = reports.handled(), reports.cpu_s(), time.monotonic()
    time.sleep(seconds)
    lasted_s = time.monotonic() - begun_s
    if reports.handled() >= EVENTS:
        raise SystemExit(f"{way.handler}, {way.name}: the backlog was too small")
    figures = Figures(
        rate=(reports.handled() - handled) / lasted_s, cores=(reports.cpu_s() - used_s) / lasted_s
    )
    print_progress(f"{way.handler}, {way.name}: {figures.rate:.0f} events/s")
    return figures


def rows_of(figures: Mapping[Way, Sequence[Figures]]) -> list[Row]:
    """Return the medians of each way, and of its ratios to the first one in the same round."""
    first = next(iter(figures.values()))
    rows: list[Row] = []
    for way, rounds in figures.items():
        times = [one.rate / other.rate for one, other in zip(rounds, first, strict=True)]
        rows.append(
            {
                "handler": way.handler,
                "way": way.name,
                "events_per_s": round(statistics.median(one.rate for one in rounds)),
                "cores": round(statistics.median(one.cores for one in rounds), 2),
                "times": round(statistics.median(times), 2),
                "times_min": round(min(times), 2),
                "times_max": round(max(times), 2),
            }
        )
    return rows


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--only", help="this kind of handler")
    given = parser.parse_args()
    rounds, seconds = (1, 1.0) if given.quick else (given.rounds, given.seconds)
    kinds = dict.fromkeys(way.handler for way in WAYS if given.only in {None, way.handler})
    if given.quick:
        kinds = {"computes": None}
    rows: list[Row] = []
    with emulator_with({"hub": PARTITIONS}) as emulator:
        hub = emulator.connection_strings["hub"]
        fill(hub, PARTITIONS, 20_000 if given.quick else EVENTS, event)
        for kind in kinds:
            figures: dict[Way, list[Figures]] = {w: [] for w in WAYS if w.handler == kind}
            for _ in range(rounds):
                for way, found in figures.items():
                    found.append(measure(way, hub, seconds))
            rows += rows_of(figures)
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()

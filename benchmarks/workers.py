"""Workers, handler threads and key concurrency: which of them makes which handler faster?

    python benchmarks/workers.py                      # five rounds
    python benchmarks/workers.py --only computes      # one kind of handler
    python benchmarks/workers.py --quick

The real command reads a backlog of four partitions from the emulator, with a store in SQLite. A
handler computes for about two milliseconds in Python for each event, or waits for five. Once every
partition is served, the events of some seconds are counted.

The ways take turns of half a second, suspended between them, and each is compared with *one
process* of the same round; so what else runs on the machine affects all alike. *Times* are the
medians of these ratios; *cores* is how many the handler's processes had.
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
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azure.eventhub import EventData, EventHubProducerClient

from benchmarks._rows import Row, options, print_progress, print_rows
from eventproc.emulator import EventHubsEmulator

ROOT: Final = Path(__file__).parents[1]
PARTITIONS: Final = 4
KEYS: Final = 20
BATCH: Final = 1_000
EVENTS: Final = 800_000
TIMEOUT_S: Final = 90
SETTLE_S: Final = 1.0
SLOT_S: Final = 0.5
READ_S: Final = 0.02


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

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            pid, partition, count, _ = line.split()
            with self._lock:
                self._counts[int(pid), partition] = int(count)


def publish(hub: str, count: int) -> None:
    """Fill all partitions."""
    with EventHubProducerClient.from_connection_string(hub) as producer:
        for partition in range(PARTITIONS):
            for first in range(0, count // PARTITIONS, BATCH):
                batch = producer.create_batch(partition_id=str(partition))
                for number in range(first, first + BATCH):
                    event = EventData(b"x" * 100)
                    event.properties = {"key": f"key-{number % KEYS}"}
                    batch.add(event)
                producer.send_batch(batch)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the processes of a way did."""

    event_count: int = 0
    cpu_s: float = 0.0
    lasted_s: float = 0.0

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.event_count / self.lasted_s

    @property
    def cores(self) -> float:
        """How many cores were busy."""
        return self.cpu_s / self.lasted_s

    def __add__(self, other: "Figures") -> "Figures":
        """Return the sum of two turns."""
        return Figures(
            self.event_count + other.event_count,
            self.cpu_s + other.cpu_s,
            self.lasted_s + other.lasted_s,
        )


class Running:
    """The processes of one way: suspended, except while they are measured."""

    def __init__(self, way: Way, hub: str, folder: str) -> None:
        """Start them; return when every partition is served and every process works."""
        self.way = way
        self._process = subprocess.Popen(
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
        self._reports = Reports(self._process)
        until_s = time.monotonic() + TIMEOUT_S
        while not self._is_complete():
            if time.monotonic() > until_s or self._process.poll() is not None:
                raise SystemExit(f"{way.handler}, {way.name}: it did not begin")
            time.sleep(0.05)
        time.sleep(SETTLE_S)
        self._pids = self._reports.pids()
        self._signal(signal.SIGSTOP)

    def work(self, seconds: float) -> Figures:
        """Let the processes run for this long; return what they did."""
        before, cpu_before_s, begun_s = self._reports.handled(), self._cpu_s(), time.monotonic()
        self._signal(signal.SIGCONT)
        time.sleep(seconds)
        self._signal(signal.SIGSTOP)
        lasted_s = time.monotonic() - begun_s
        time.sleep(READ_S)  # what was printed until then
        if self._reports.handled() >= EVENTS:
            raise SystemExit(f"{self.way.handler}, {self.way.name}: the backlog was too small")
        return Figures(self._reports.handled() - before, self._cpu_s() - cpu_before_s, lasted_s)

    def end(self) -> None:
        """End everything at once: the second signal does."""
        with suppress(ProcessLookupError):
            self._signal(signal.SIGCONT)
        while self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.2)

    def _is_complete(self) -> bool:
        reports = self._reports
        return (
            len(reports.pids()) == self.way.process_count
            and len(reports.partitions()) == PARTITIONS
        )

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._pids:
            os.kill(pid, number)

    def _cpu_s(self) -> float:
        """Return the CPU time of the processes."""
        total = 0
        for pid in self._pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")


def measure(
    ways: Sequence[Way], hub: str, rounds: int, seconds: float
) -> Mapping[Way, Sequence[Figures]]:
    """Let these ways take turns; return the figures of each round."""
    figures: dict[Way, list[Figures]] = {way: [] for way in ways}
    with ExitStack() as stack:
        running = []
        for way in ways:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            running.append(Running(way, hub, folder))
            stack.callback(running[-1].end)
        for number in range(rounds):
            totals = dict.fromkeys(ways, Figures())
            for _ in range(round(seconds / SLOT_S)):
                for each in running:
                    totals[each.way] += each.work(SLOT_S)
            for way, total in totals.items():
                figures[way].append(total)
                print_progress(f"{number}: {way.handler}, {way.name}: {total.rate:.0f} events/s")
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
    with EventHubsEmulator({"hub": PARTITIONS}) as emulator:
        hub = emulator.connection_string_for("hub")
        publish(hub, 20_000 if given.quick else EVENTS)
        for kind in kinds:
            ways = [way for way in WAYS if way.handler == kind]
            rows += rows_of(measure(ways, hub, rounds, seconds))
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()

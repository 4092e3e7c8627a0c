"""Workers, handler threads and key concurrency: which of them makes which handler faster?

    python benchmarks/workers.py                      # five rounds
    python benchmarks/workers.py --only computes      # one kind of handler
    python benchmarks/workers.py --quick

The real command reads a backlog of four partitions from the emulator, with a store in SQLite. A
handler computes for about two milliseconds in Python for each event, or waits for five. Once every
partition is served, the events of some seconds are counted.

The ways take turns, and each is compared with *one process* of the same round, so that what else
runs on the machine affects both. *Times* are the medians of these ratios; *cores* is how many of
them the processes of the handler used.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
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
TIMEOUT_S: Final = 90


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


def cpu_s(pids: set[int]) -> float:
    """Return the processor time of these processes."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def measure(way: Way, hub: str, seconds: float) -> tuple[float, float]:
    """Return the events per second, and how many cores were used."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "eventproc.cli", "run", "--store", f"sqlite:{folder}/db"),
                *(f"benchmarks._worker_handlers:{way.class_name}", *way.arguments),
                *("--interval", "1s", "--expiration", "6s", "--log-level", "error"),
            ],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ
            | {
                "EVENTPROC_CONNECTION_STRING": hub,
                "BENCH_REPORT_EVERY": str(way.report_every),
            },
        )
        try:
            reports = Reports(process)
            until_s = time.monotonic() + TIMEOUT_S
            while len(reports.pids()) < way.process_count or len(reports.partitions()) < PARTITIONS:
                if time.monotonic() > until_s or process.poll() is not None:
                    raise SystemExit(f"{way.handler}, {way.name}: it did not begin")
                time.sleep(0.05)
            time.sleep(seconds / 4)
            pids = reports.pids()
            before, cpu_before_s, begun_s = reports.handled(), cpu_s(pids), time.monotonic()
            time.sleep(seconds)
            after, cpu_after_s, ended_s = reports.handled(), cpu_s(pids), time.monotonic()
        finally:
            while process.poll() is None:  # The second signal ends everything at once.
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
    lasted_s = ended_s - begun_s
    return (after - before) / lasted_s, (cpu_after_s - cpu_before_s) / lasted_s


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--only", help="this kind of handler")
    given = parser.parse_args()
    rounds, seconds = (1, 1.0) if given.quick else (given.rounds, given.seconds)
    ways = [way for way in WAYS if given.only in {None, way.handler}]
    if given.quick:
        ways = [way for way in ways if way.handler == "computes"]
    figures: dict[Way, list[tuple[float, float]]] = defaultdict(list)
    ratios: dict[Way, list[float]] = defaultdict(list)
    with EventHubsEmulator({"hub": PARTITIONS}) as emulator:
        hub = emulator.connection_string_for("hub")
        publish(hub, int(1_000 * seconds) * PARTITIONS if given.quick else 400_000)
        for number in range(rounds):
            of_first: dict[str, float] = {}
            for way in ways:
                found = measure(way, hub, seconds)
                figures[way].append(found)
                first = of_first.setdefault(way.handler, found[0])
                ratios[way].append(found[0] / first)
                print_progress(f"{number}: {way.handler}, {way.name}: {found[0]:.0f} events/s")
    rows: list[Row] = [
        {
            "handler": way.handler,
            "way": way.name,
            "events_per_s": round(statistics.median(rate for rate, _ in figures[way])),
            "cores": round(statistics.median(cores for _, cores in figures[way]), 2),
            "times": round(statistics.median(ratios[way]), 2),
            "times_min": round(min(ratios[way]), 2),
            "times_max": round(max(ratios[way]), 2),
        }
        for way in ways
    ]
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()

"""How fast events are received: eventproc beside Azure's own clients, on the emulator.

    python benchmarks/receive.py                     # a table
    python benchmarks/receive.py --format json       # for programs
    python benchmarks/receive.py --partitions 1 --candidates eventproc azure-aio

Emulator, publisher and reader are three processes, and each reader is a fresh one; those of one
hub read the same backlog, one after another. Two questions:

- *backlog*: a full hub is read from the oldest event on, and body, sequence number and offset of
  every event are read. The time to the first event and until every partition delivers (both
  from the call that starts to receive); events per second, and CPU time per event of the
  reader and of the emulator, from the second tenth of the backlog on;
- *trickle*: an event every 60 to 100 ms, to one partition after another. The time from publishing
  to the reader's code. Measured once for each candidate and number of partitions.

``eventproc`` is a receiver, ``eventproc-processor`` a whole processor with a handler of events, and
``eventproc-columns`` one with a handler of columns, in batches of up to 10,000 rows; that one sums
the lengths of the bodies and looks for the least and the greatest number.

``bare`` is the limit: a reader that only counts the events in the received bytes. It shows the
emulator's own throughput, which must be far above that of every other candidate.
"""

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, Final

from azure.eventhub import EventData, EventHubProducerClient

from benchmarks._readers import CANDIDATES, SENT_AT, WARM_UP, ReadCounters
from benchmarks._rows import Row, options, print_progress, print_rows
from eventproc.emulator import EventHubsEmulator

HUB: Final = "bench"
TIMED_BELOW: Final = 5000


def serve(partition_count: int) -> None:
    """Run the emulator; print the CPU time used so far for each line of standard input."""
    with EventHubsEmulator({HUB: partition_count}) as emulator:
        print(emulator.connection_string_for(HUB), flush=True)
        for _ in sys.stdin:
            print(time.process_time(), flush=True)


def fill(conn_str: str, partition_count: int, event_count: int, body_size: int) -> None:
    """Publish the backlog, evenly."""
    with EventHubProducerClient.from_connection_string(conn_str) as producer:
        for number in range(partition_count):
            left = event_count // partition_count
            while left:
                batch = producer.create_batch(partition_id=str(number))
                for _ in range(min(left, 500)):
                    batch.add(EventData(SENT_AT.pack(time.monotonic()).ljust(body_size, b"x")))
                    left -= 1
                producer.send_batch(batch)


def trickle(conn_str: str, event_count: int, body_size: int) -> None:
    """Publish one event after another, at uneven intervals."""
    rng = random.Random(1)
    with EventHubProducerClient.from_connection_string(conn_str) as producer:
        producer.send_event(EventData(SENT_AT.pack(WARM_UP).ljust(body_size, b"x")))
        for _ in range(event_count - 1):
            time.sleep(rng.uniform(0.06, 0.1))
            sent_at = SENT_AT.pack(time.monotonic())
            producer.send_event(EventData(sent_at.ljust(body_size, b"x")))


def read(given: argparse.Namespace) -> None:
    """Run one reader; print its figures as JSON."""
    counters = ReadCounters(
        wanted=given.events,
        partition_count=given.partitions[0],
        batch=given.batch[0],
        is_timed=given.events < TIMED_BELOW,
    )
    CANDIDATES[given.candidates[0]](given.conn_str, counters)
    ended, cpu_s = time.monotonic(), time.process_time()
    count, begun, cpu_before_s = counters.counted_from or (0, counters.first, 0.0)
    counted = max(counters.count - count, 1)
    latencies = sorted(counters.latencies) or [0.0]
    found = {
        "events_per_s": round(counted / (ended - begun)),
        "cpu_us_per_event": round(1e6 * (cpu_s - cpu_before_s) / counted, 2),
        "first_event_s": round(counters.first - counters.begun, 3),
        "all_partitions_s": round(max(counters.all_partitions - counters.begun, 0), 3),
        "latency_p50_ms": round(1e3 * latencies[len(latencies) // 2], 1),
        "latency_p99_ms": round(1e3 * latencies[len(latencies) * 99 // 100], 1),
    }
    print(json.dumps(found), flush=True)


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start this program in another of its roles."""
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def read_line(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def cpu_s_of(emulator: subprocess.Popen[str]) -> float:
    assert emulator.stdin is not None
    emulator.stdin.write("\n")
    emulator.stdin.flush()
    return float(read_line(emulator))


def finish(process: subprocess.Popen[str], timeout_s: float) -> dict[str, Any]:
    """Return what a reader printed; it is killed, since Azure's clients take some time to end."""
    timer = threading.Timer(timeout_s, process.kill)
    timer.start()
    line = read_line(process)
    timer.cancel()
    process.kill()
    process.wait()
    return dict(json.loads(line)) if line else {}


@contextmanager
def emulator_of(partition_count: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start an emulator; yield it with its connection string."""
    emulator = start("--role", "emulator", "--partitions", partition_count)
    try:
        yield emulator, read_line(emulator)
    finally:
        emulator.kill()
        emulator.wait()


def read_backlog(
    emulator: subprocess.Popen[str], case: dict[str, Any], *reading: object
) -> dict[str, Any]:
    """Return the report of a fresh reader, and the CPU time of the emulator."""
    count = int(str(reading[-1]))
    before_s = cpu_s_of(emulator)
    answer = finish(start(*role_of(case), *reading), 120)
    used_s = cpu_s_of(emulator) - before_s
    found = {k: v for k, v in answer.items() if not k.startswith("latency")}
    return found | {"emulator_us_per_event": round(1e6 * used_s / count, 2)}


def read_trickle(case: dict[str, Any], count: int) -> dict[str, Any]:
    """Return the latency of events that are published one by one."""
    with emulator_of(case["partitions"]) as (_, conn_str):
        reader = start(*role_of(case), "--conn-str", conn_str, "--events", count)
        time.sleep(4 + case["partitions"] / 8)  # until all links are attached
        trickle(conn_str, count, case["body_bytes"])
        answer = finish(reader, 60)
    return {k: v for k, v in answer.items() if k.startswith("latency")}


def role_of(case: dict[str, Any]) -> list[object]:
    role = ["--role", "reader", "--candidates", case["candidate"]]
    return [*role, "--partitions", case["partitions"], "--batch", case["batch"]]


def measure(given: argparse.Namespace) -> Iterator[Row]:
    """Fill a hub for each number of partitions and size, and let each candidate read it."""
    asked = set()
    for partition_count, body_size in product(given.partitions, given.body):
        with emulator_of(partition_count) as (emulator, conn_str):
            fill(conn_str, partition_count, given.events, body_size)
            for batch, candidate in product(given.batch, given.candidates):
                print_progress(
                    f"{candidate}, {partition_count} partitions, {body_size} B, batches of {batch}"
                )
                case = {
                    "candidate": candidate,
                    "partitions": partition_count,
                    "body_bytes": body_size,
                    "batch": batch,
                }
                reading = ("--conn-str", conn_str, "--events", given.events)
                found = read_backlog(emulator, case, *reading)
                if (
                    given.trickle
                    and candidate != "bare"
                    and (candidate, partition_count) not in asked
                ):
                    asked.add((candidate, partition_count))
                    found |= read_trickle(case, given.trickle)
                yield case | found


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--candidates", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    parser.add_argument("--partitions", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--body", nargs="+", type=int, default=[100, 1024], help="bytes")
    parser.add_argument("--batch", nargs="+", type=int, default=[300, 3000], help="most events")
    parser.add_argument("--events", type=int, default=96_000, help="in the backlog")
    parser.add_argument("--trickle", type=int, default=100, help="events; 0 to skip this")
    parser.add_argument("--role", choices=("emulator", "reader"), help=argparse.SUPPRESS)
    parser.add_argument("--conn-str", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role == "emulator":
        serve(given.partitions[0])
        return
    if given.role == "reader":
        read(given)
        return
    if given.quick:
        given.partitions, given.body, given.batch = [1], [100], [300]
        given.events, given.trickle = 6000, 0
    print_rows(list(measure(given)), given.format)


if __name__ == "__main__":
    main()

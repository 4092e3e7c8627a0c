"""How fast events are received: eventproc beside Azure's own clients, on the emulator.

    python benchmarks/receive.py                     # a table
    python benchmarks/receive.py --format json       # for programs
    python benchmarks/receive.py --partitions 1 --candidates eventproc azure-aio
    python benchmarks/receive.py --rate 1000 --partitions 32 64 --candidates eventproc-processor

Emulator and reader are two processes, and each reader is a fresh one; those of one hub read the
same backlog, one after another, from the oldest event on, and look at body, sequence number and
offset of every event. The time to the first event, from the call that starts to receive; events per
second, and CPU time per event of the reader, from the second tenth of the backlog on, and of the
emulator.

With ``--rate`` there is no backlog: the emulator publishes so many events a second to each
partition, in 20 portions a second, for ten seconds. Of all but the first of them: the time from
publishing to the handler. Where the emulator takes a whole core, it is itself the limit.

``eventproc`` is a receiver, ``eventproc-processor`` a whole processor with a handler of events,
``eventproc-each`` one with a handler of single events, and ``eventproc-columns`` one with a handler
of columns, in batches of up to 10,000 rows; that one sums the lengths of the bodies and looks for
the least and the greatest number.

``bare`` is the limit: a reader that only counts the events in the received bytes. It shows the
emulator's own throughput, which must be far above that of every other candidate.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from benchmarks._backlog import child
from benchmarks._hub import emulator_with, equal_events, fill
from benchmarks._readers import CANDIDATES, Ages, ReadCounters
from benchmarks._rows import Row, options, print_progress, print_rows

HUB: Final = "bench"
PACED_S: Final = 10


def read(candidate: str, conn_str: str, rate: int, size: Sequence[int]) -> None:
    """Read the events; print the figures, and end without waiting for Azure's clients."""
    events, partitions, batch = size
    counters = (Ages if rate else ReadCounters)(events, partitions, batch)
    CANDIDATES[candidate](conn_str, counters)
    ended, cpu_s = time.monotonic(), time.process_time()
    count, begun, cpu_before_s = counters.counted_from or (0, counters.first, 0.0)
    counted = max(counters.count - count, 1)
    found = {
        "events_per_s": round(counted / (ended - begun)),
        "cpu_us_per_event": round(1e6 * (cpu_s - cpu_before_s) / counted, 2),
        **counters.times(),
    }
    print(json.dumps(found), flush=True)
    os._exit(0)


def measure(given: argparse.Namespace) -> Iterator[Row]:
    """Fill a hub for each number of partitions and size, and let each candidate read it."""
    rate = given.rate
    for partitions, body in product(given.partitions, given.body):
        events = PACED_S * rate * partitions or given.events
        with emulator_with({HUB: partitions}, rate, body) as emulator:
            conn_str = emulator.connection_strings[HUB]
            if not rate:
                fill(conn_str, partitions, events, equal_events(b"x" * body))
            for batch, candidate in product(given.batch, given.candidates):
                print_progress(f"{candidate}, {partitions} partitions, {body} B, {batch} at once")
                before_s = emulator.cpu_s()
                size = events, partitions, batch
                found = child(__file__, candidate, conn_str, rate, size)
                used_s = emulator.cpu_s() - before_s
                yield {
                    "candidate": candidate,
                    "partitions": partitions,
                    "body_bytes": body,
                    "batch": batch,
                    **found,
                    "emulator_us_per_event": round(1e6 * used_s / events, 2),
                }


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--candidates", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    parser.add_argument("--partitions", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--body", nargs="+", type=int, default=[100, 1024], help="bytes")
    parser.add_argument("--batch", nargs="+", type=int, default=[300, 3000], help="most events")
    parser.add_argument("--events", type=int, default=96_000, help="in the backlog")
    parser.add_argument("--rate", type=int, default=0, help="events a second for each partition")
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        read(*json.loads(given.reader))
    if given.quick:
        given.partitions, given.body, given.batch, given.events = [1], [100], [300], 6000
    print_rows(list(measure(given)), given.format)


if __name__ == "__main__":
    main()

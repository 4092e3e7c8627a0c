"""The demo's publisher, a separate process: sends flights, keyed by aircraft, with Azure's client.

It sends a backlog as fast as possible and the rest at a steady rate. After a line on standard input
it sends the rest as fast as possible; at the end of standard input the process ends. It writes the
number of events that the hub accepted to a file.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Final

from azure.eventhub import EventData, EventHubProducerClient

from eventproc.cli.access.hub import HUB_VARIABLE
from eventproc.cli.demo.flights import Flight, find_data_file, read_flights
from eventproc.cli.terminal.end_of_input import watch_input

WINDOW: Final = 10_000
"""Flights that are sorted by aircraft before they are sent, as a batch has only one key."""

PROGRESS_INTERVAL_S: Final = 0.1


def batches(flights: Sequence[Flight]) -> Iterator[tuple[str, list[Flight]]]:
    """Yield the flights of each aircraft, in their order."""
    by_aircraft = sorted(flights, key=lambda flight: str(flight["aircraft"]))
    for aircraft, group in groupby(by_aircraft, key=lambda flight: str(flight["aircraft"])):
        yield aircraft, list(group)


class RateLimiter:
    """Delays publishing after ``backlog`` events to ``rate`` events a second, until hurried."""

    def __init__(self, *, backlog: int, rate: float) -> None:
        self._backlog = backlog
        self._rate = rate
        self._begun_s: float | None = None
        self._is_hurried = threading.Event()

    def hurry(self) -> None:
        """End the delays. Called in any thread."""
        self._is_hurried.set()

    def wait(self, published: int) -> None:
        """Wait until the next events are due."""
        if published < self._backlog:
            return
        if self._begun_s is None:
            self._begun_s = time.monotonic()
        due_s = self._begun_s + (published - self._backlog) / self._rate
        self._is_hurried.wait(max(0.0, due_s - time.monotonic()))


def publish(flights: Iterator[Flight], limiter: RateLimiter, progress: Path) -> None:
    """Send all flights; write the number of sent flights to ``progress`` now and then."""
    published = 0
    client = EventHubProducerClient.from_connection_string(os.environ[HUB_VARIABLE])
    with client:
        written_s = 0.0
        while window := list(islice(flights, WINDOW)):
            for aircraft, group in batches(window):
                client.send_batch(
                    [EventData(json.dumps(flight)) for flight in group], partition_key=aircraft
                )
                published += len(group)
                if time.monotonic() - written_s > PROGRESS_INTERVAL_S:
                    write_progress(progress, published)
                    written_s = time.monotonic()
                limiter.wait(published)
        write_progress(progress, published)


def write_progress(progress: Path, published: int) -> None:
    """Replace the file as a whole, so that a reader never sees half of a number."""
    written = progress.with_suffix(".new")
    written.write_text(str(published), encoding="ascii")
    written.replace(progress)


def main() -> None:
    """Publish flights. The arguments are count, backlog, rate and progress file."""
    count, backlog, rate, progress = sys.argv[1:]
    limiter = RateLimiter(backlog=int(backlog), rate=float(rate))
    watch_input(at_end=lambda: os._exit(0), at_data=limiter.hurry)
    publish(read_flights(find_data_file(), int(count)), limiter, Path(progress))


if __name__ == "__main__":
    main()

"""The demo's publisher, a process of its own: flights, keyed by aircraft, through Azure's client.

First a backlog as fast as it goes, then a steady stream. A line on standard input makes it hurry;
the end of standard input ends it. It writes how many events the hub took to a file.
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

from eventproc.cli.demo.flights import Flight, find_data_file, read_flights
from eventproc.cli.end_of_input import STANDARD_INPUT
from eventproc.cli.sources import HUB_VARIABLE

WINDOW: Final = 10_000
"""Flights that are sorted by aircraft and sent together: a batch may have one key only."""

TELL_EVERY_S: Final = 0.1


def batches(flights: Sequence[Flight]) -> Iterator[tuple[str, list[Flight]]]:
    """Put each aircraft's flights together, in their order."""
    by_aircraft = sorted(flights, key=lambda flight: str(flight["aircraft"]))
    for aircraft, group in groupby(by_aircraft, key=lambda flight: str(flight["aircraft"])):
        yield aircraft, list(group)


class Pace:
    """How fast to publish: a backlog at once, then ``rate`` events each second, until hurried."""

    def __init__(self, *, backlog: int, rate: float) -> None:
        self._backlog = backlog
        self._rate = rate
        self._begun_s: float | None = None
        self._is_hurried = threading.Event()

    def watch_input(self) -> None:
        """Hurry at the first word from standard input, and end this process at its end."""

        def watch() -> None:
            while os.read(STANDARD_INPUT, 4096):  # past Python's buffer and its lock
                self._is_hurried.set()
            os._exit(0)

        threading.Thread(target=watch, name="input", daemon=True).start()

    def wait(self, published: int) -> None:
        """Return when the next events are due."""
        if published < self._backlog:
            return
        if self._begun_s is None:
            self._begun_s = time.monotonic()
        due_s = self._begun_s + (published - self._backlog) / self._rate
        self._is_hurried.wait(max(0.0, due_s - time.monotonic()))


def publish(flights: Iterator[Flight], pace: Pace, progress: Path) -> None:
    """Send all flights; ``progress`` always holds how many the hub has taken."""
    published = 0
    client = EventHubProducerClient.from_connection_string(os.environ[HUB_VARIABLE])
    with client:
        told_s = 0.0
        while window := list(islice(flights, WINDOW)):
            for aircraft, group in batches(window):
                client.send_batch(
                    [EventData(json.dumps(flight)) for flight in group], partition_key=aircraft
                )
                published += len(group)
                if time.monotonic() - told_s > TELL_EVERY_S:
                    _tell(progress, published)
                    told_s = time.monotonic()
                pace.wait(published)
        _tell(progress, published)


def _tell(progress: Path, published: int) -> None:
    """Replace the number as a whole: a reader never sees half of one."""
    written = progress.with_suffix(".new")
    written.write_text(str(published), encoding="ascii")
    written.replace(progress)


def main() -> None:
    """Publish what the arguments say: count, backlog, rate, progress file."""
    count, backlog, rate, progress = sys.argv[1:]
    pace = Pace(backlog=int(backlog), rate=float(rate))
    pace.watch_input()
    publish(read_flights(find_data_file(), int(count)), pace, Path(progress))


if __name__ == "__main__":
    main()

"""The demo's publisher, a separate process: sends flights, keyed by aircraft, with Azure's client.

It sends them at a steady rate. After a line on standard input it sends the rest as fast as
possible; at the end of standard input the process ends.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Final

from azure.eventhub import EventData, EventHubProducerClient

from eventproc._command.arguments.access import HUB_VARIABLE
from eventproc._command.demo.flights import Flight, find_data_file, read_flights
from eventproc._command.terminal.ends import watch_input

WINDOW: Final = 10_000
"""Flights that are sorted by aircraft before they are sent, as a batch has only one key."""


def batches(flights: Sequence[Flight]) -> Iterator[tuple[str, list[Flight]]]:
    """Yield the flights of each aircraft, in their order."""
    by_aircraft = sorted(flights, key=lambda flight: str(flight["aircraft"]))
    for aircraft, group in groupby(by_aircraft, key=lambda flight: str(flight["aircraft"])):
        yield aircraft, list(group)


def main() -> None:
    """Publish flights. The arguments are their count, and how many of them in a second."""
    count, rate = map(int, sys.argv[1:])
    is_hurried = threading.Event()
    watch_input(at_end=lambda: os._exit(0), at_data=is_hurried.set)
    flights = read_flights(find_data_file(), count)
    published, begun_s = 0, time.monotonic()
    with EventHubProducerClient.from_connection_string(os.environ[HUB_VARIABLE]) as client:
        while window := list(islice(flights, WINDOW)):
            for aircraft, group in batches(window):
                client.send_batch(
                    [EventData(json.dumps(flight)) for flight in group], partition_key=aircraft
                )
                published += len(group)
                is_hurried.wait(max(0.0, begun_s + published / rate - time.monotonic()))


if __name__ == "__main__":
    main()

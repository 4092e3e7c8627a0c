"""An emulator in a process of its own, backlogs that fill its hubs, and the CPU time of processes.

    python benchmarks/_hub.py '{"hub": 4}'

runs an emulator with these hubs, by their number of partitions, until its standard input ends.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from azure.eventhub import EventData, EventHubProducerClient

from eventproc.emulator import EventHubsEmulator

SENT_AT_ONCE: Final = 500


class EmulatorProcess:
    """The emulator: another process, so that its CPU time is not the reader's."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        assert process.stdout is not None
        self.connection_strings: Mapping[str, str] = json.loads(process.stdout.readline())

    def cpu_s(self) -> float:
        """Return its CPU time so far."""
        return cpu_s_of(self._process.pid)


@contextmanager
def emulator_with(hubs: Mapping[str, int]) -> Iterator[EmulatorProcess]:
    """Start an emulator with these hubs, by their number of partitions."""
    command = [sys.executable, __file__, json.dumps(dict(hubs))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield EmulatorProcess(process)
    finally:
        process.kill()
        process.wait()


def fill(
    hub: str, partition_count: int, event_count: int, make: Callable[[int], EventData]
) -> None:
    """Publish events to all partitions, evenly; *make* gets their numbers in the partition."""
    with EventHubProducerClient.from_connection_string(hub) as producer:
        for partition in range(partition_count):
            numbers = iter(range(event_count // partition_count))
            while some := list(islice(numbers, SENT_AT_ONCE)):
                batch = producer.create_batch(partition_id=str(partition))
                for number in some:
                    batch.add(make(number))
                producer.send_batch(batch)


def equal_events(body: bytes) -> Callable[[int], EventData]:
    """Return what makes events that all have this body."""
    return lambda _: EventData(body)


def cpu_s_of(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    with EventHubsEmulator(json.loads(sys.argv[1])) as emulator:
        addresses = {hub: emulator.connection_string_for(hub) for hub in json.loads(sys.argv[1])}
        print(json.dumps(addresses), flush=True)
        sys.stdin.read()

"""An emulator in a process of its own, backlogs that fill its hubs, and the CPU time of processes.

    python benchmarks/_hub.py '{"hub": 4}' 1000 100

runs an emulator with these hubs, by their number of partitions, until its standard input ends. To
each partition that has a receiver it publishes 1,000 events of 100 bytes a second.
"""

import asyncio
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from azure.eventhub import EventData, EventHubProducerClient

from eventproc.emulator import EmulatorConfiguration, EmulatorServer, Retention, hubs_of
from eventproc.emulator._amqp.message import draft_of
from eventproc.emulator._hub.hub import Partition

SENT_AT_ONCE: Final = 500
SENT_AT: Final = struct.Struct(">d")
"""The first bytes of a body: the monotonic clock, which all processes of a machine share."""

TICKS_PER_S: Final = 20
"""How often paced events are published to each partition."""


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
def emulator_with(
    hubs: Mapping[str, int], rate: int = 0, size: int = 0
) -> Iterator[EmulatorProcess]:
    """Start an emulator with these hubs, by their number of partitions.

    It publishes *rate* events of *size* bytes a second to each partition, without a connection, so
    that it has time for its readers.
    """
    command = [sys.executable, __file__, json.dumps(dict(hubs)), str(rate), str(size)]
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


async def publish_paced(partitions: Sequence[Partition], rate: int, size: int) -> None:
    """Publish to one partition after another, if it has a receiver, and else empty it.

    Each event has the time when it was published.
    """
    due_s = time.monotonic()
    for partition in cycle(partitions):
        if any(partition.receivers.values()):
            body = SENT_AT.pack(time.monotonic()).ljust(size, b"x")
            event = draft_of(b"\x00\x53\x75\xb0" + struct.pack(">I", size) + body)
            partition.publish([event] * (rate // TICKS_PER_S))
        else:
            partition.drop_before(partition.log.next_sequence_number)
        due_s += 1 / TICKS_PER_S / len(partitions)
        await asyncio.sleep(max(due_s - time.monotonic(), 0))


async def serve(hubs: Mapping[str, int], rate: int, size: int) -> None:
    """Serve until the end of standard input."""
    retention = Retention(events_max=20_000 if rate else None)
    configuration = EmulatorConfiguration(hubs=hubs_of(hubs), port=0, retention=retention)
    async with EmulatorServer(configuration) as server:
        print(json.dumps({hub: server.connection_string_for(hub) for hub in hubs}), flush=True)
        logs = [server.namespace.hub(hub).partitions for hub in hubs if rate]
        publishing = [publish_paced(partitions, rate, size) for partitions in logs]
        await asyncio.gather(asyncio.to_thread(sys.stdin.read), *publishing)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1]), *map(int, sys.argv[2:])))

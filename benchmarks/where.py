"""Where the CPU time of receiving goes, beside the limit of the machine.

    python benchmarks/where.py                   # a table
    python benchmarks/where.py --format json
    python benchmarks/where.py --events 40000

A whole processor reads a full hub of the emulator, its handler reads the body and the number of
each event, and its progress is stored in memory. Once in a millisecond of its CPU time its
current file is sampled; calls of the standard library count for their caller. The last row is the
limit: as many bytes as there were, received from a plain socket by asyncio.
"""

import asyncio
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from benchmarks._fleet import publish_backlog
from benchmarks._rows import Row, options, print_rows
from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import EventProcessor, PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.emulator import EventHubsEmulator
from eventproc.sources.eventhubs import EventHubSource

HUB: Final = "bench"
PARTITIONS: Final = 8
SAMPLE_S: Final = 0.001
FRAME_BYTES: Final = 30
"""The overhead of AMQP for each message, about."""

AREAS: Final = {
    "benchmarks/": "the handler",
    "eventproc/sources/": "our receiver",
    "eventproc/": "our pumps, leases, checkpoints",
    "checkpointstores/": "our pumps, leases, checkpoints",
    "azure/": "azure-eventhub and its AMQP",
    "asyncio/": "asyncio, sockets",
    "selectors.py": "asyncio, sockets",
}
"""Areas by the beginning of a file's path in its packages' folder; the first match counts."""

ROOT: Final = f"{Path(__file__).parents[1]}/"
LIBRARY: Final = re.compile(r".*(site-packages|python3\.\d+)/")


class Reading(PartitionHandler):
    """Reads each event."""

    bytes_seen = 0

    async def process_events(
        self, _context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Read body and number."""
        for event in events:
            Reading.bytes_seen += len(event.body) + (event.sequence_number < 0)


def area_of(frame: FrameType | None) -> str:
    """Return the area of a frame: that of the innermost caller that has one."""
    while frame is not None:
        path = LIBRARY.sub("", frame.f_code.co_filename.removeprefix(ROOT))
        for beginning, area in AREAS.items():
            if path.startswith(beginning):
                return area
        frame = frame.f_back
    return "other"


async def receive(conn_str: str, event_count: int) -> tuple[Counter[str], float]:
    """Receive everything; return samples by area, and the CPU time of it."""
    samples: Counter[str] = Counter()
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(conn_str),
        store=MemoryCheckpointStore(MemoryAccount()),
        handler=Reading,
    )
    signal.signal(signal.SIGPROF, lambda _, frame: samples.update([area_of(frame)]))
    async with processor:
        while not processor.statistics().counters.handled_count:  # noqa: ASYNC110 - a count
            await asyncio.sleep(0.001)
        cpu_s = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
        while processor.statistics().counters.handled_count < event_count:  # noqa: ASYNC110 - a count
            await asyncio.sleep(0.01)
        signal.setitimer(signal.ITIMER_PROF, 0)
        cpu_s = time.process_time() - cpu_s
    return samples, cpu_s


class Counting(asyncio.Protocol):
    """Receives bytes, and does nothing else."""

    def __init__(self) -> None:
        self.count = 0
        self.is_over = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Count."""
        self.count += len(data)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Note the end."""
        self.is_over.set()


def bare_cpu_s(byte_count: int) -> float:
    """Return the CPU time to receive so many bytes from a socket of another process."""
    command = [sys.executable, __file__, "--role", "socket", "--bytes", str(byte_count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        port = int(sender.stdout.readline())
        cpu_s = time.process_time()
        assert asyncio.run(count_bytes(port)) == byte_count, "all was received"
        return time.process_time() - cpu_s


async def count_bytes(port: int) -> int:
    """Receive until the other end closes."""
    loop = asyncio.get_running_loop()
    _, counting = await loop.create_connection(Counting, "127.0.0.1", port)
    await counting.is_over.wait()
    return counting.count


def send_bytes(byte_count: int) -> None:
    """Send the bytes to a plain socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
        with connection:
            piece = bytes(64 * 1024)
            while byte_count:
                byte_count -= connection.send(piece[:byte_count])


def serve() -> None:
    """Run the emulator until standard input ends; print its address, then the size of an event."""
    with EventHubsEmulator({HUB: PARTITIONS}) as emulator:
        print(emulator.connection_string_for(HUB), flush=True)
        sys.stdin.readline()
        print(len(emulator.events(HUB, "0")[0].payload) + FRAME_BYTES, flush=True)
        sys.stdin.read()


def measure(event_count: int) -> list[Row]:
    command = [sys.executable, __file__, "--role", "emulator"]
    emulator = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert emulator.stdin is not None
    assert emulator.stdout is not None
    try:
        conn_str = emulator.stdout.readline().strip()
        publish_backlog(conn_str, PARTITIONS, event_count)
        emulator.stdin.write("\n")
        emulator.stdin.flush()
        event_bytes = int(emulator.stdout.readline())
        samples, cpu_s = asyncio.run(receive(conn_str, event_count))
    finally:
        emulator.kill()
        emulator.wait()
    bare_s = bare_cpu_s(event_bytes * event_count)
    rows: list[Row] = [
        {
            "where": area,
            "share_percent": round(100 * count / samples.total(), 1),
            "cpu_us_per_event": round(1e6 * cpu_s / event_count * count / samples.total(), 2),
        }
        for area, count in samples.most_common()
    ]
    for where, seconds in (("all", cpu_s), (f"{event_bytes} bytes from a bare socket", bare_s)):
        rows.append(
            {
                "where": where,
                "share_percent": round(100 * seconds / cpu_s, 1),
                "cpu_us_per_event": round(1e6 * seconds / event_count, 2),
            }
        )
    return rows


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--role", choices=("emulator", "socket"), help="for its own use")
    parser.add_argument("--bytes", type=int, help="for its own use")
    given = parser.parse_args()
    if given.role == "emulator":
        serve()
    elif given.role == "socket":
        send_bytes(given.bytes)
    else:
        print_rows(measure(8_000 if given.quick else given.events), given.format)


if __name__ == "__main__":
    main()

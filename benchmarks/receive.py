"""How fast events are received: eventproc beside Azure's own clients, on the emulator.

    python benchmarks/receive.py                     # a table
    python benchmarks/receive.py --format json       # for programs
    python benchmarks/receive.py --partitions 1 --candidates eventproc azure-aio

Emulator, publisher and reader are three processes, and each reader is a fresh one. Two questions:

- *backlog*: a full hub is read from the oldest event on. The time to the first event and until
  every partition delivers (both from the call that starts to receive), events per second from the
  first event on, and processor time per event;
- *trickle*: an event every 60 to 100 ms, to one partition after another. The time from publishing
  to the reader's code.
"""

import argparse
import asyncio
import json
import random
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeVar

from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient

from eventproc.emulator import EventHubsEmulator
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource

HUB: Final = "bench"
TIMED_BELOW: Final = 5000
BATCH: Final = 300
SENT_AT: Final = struct.Struct(">d")
"""Begins every body: the monotonic clock, which all processes of a machine share."""

WARM_UP: Final = 0.0
"""Instead of a time: the publisher's first event, which waits for its own connection."""


Event = TypeVar("Event")


@dataclass
class Tally:
    """What a reader saw. Only appended to, so threads may share it."""

    wanted: int
    partition_count: int
    is_timed: bool
    """Whether each event tells when it was sent: a backlog's age means nothing."""

    begun: float = field(default_factory=time.monotonic)
    count: int = 0
    first: float = 0.0
    all_partitions: float = 0.0
    seen: set[str] = field(default_factory=set)
    latencies: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self, partition_id: str, events: Sequence[Event], body_of: Callable[[Event], bytes]
    ) -> bool:
        """Count a batch; tell whether all is there."""
        now = time.monotonic()
        with self.lock:
            self.first = self.first or now
            self.seen.add(partition_id)
            if not self.all_partitions and len(self.seen) == self.partition_count:
                self.all_partitions = now
            if self.is_timed:
                sent = (SENT_AT.unpack_from(body_of(event))[0] for event in events)
                self.latencies += [now - sent_at for sent_at in sent if sent_at != WARM_UP]
            self.count += len(events)
            return self.count >= self.wanted


def body(event: ReceivedEvent) -> bytes:
    return event.body


def joined_body(event: EventData) -> bytes:
    return b"".join(event.body)  # type: ignore[arg-type]


# --- the readers: each receives everything from the oldest event on, until the tally is full ------


async def read_with_eventproc(conn_str: str, tally: Tally, prefetch: int) -> None:
    """Run one task for each partition, as a processor's pumps do."""
    done = asyncio.Event()

    async def pump(source: EventHubSource, partition_id: str) -> None:
        receiver = await source.open_receiver("$Default", partition_id, EventPosition.earliest())
        while not done.is_set():
            events = await receiver.receive(events_max=BATCH, wait_max=timedelta(seconds=1))
            if events and tally.add(partition_id, events, body):
                done.set()

    options = EventHubOptions(prefetch=prefetch)
    async with EventHubSource.from_connection_string(conn_str, options=options) as source:
        pumps = [
            asyncio.create_task(pump(source, str(number)))
            for number in range(tally.partition_count)
        ]
        await done.wait()
        for task in pumps:
            task.cancel()


async def read_with_aio(conn_str: str, tally: Tally, prefetch: int) -> None:
    """Let Azure's aio client read all partitions."""
    done = asyncio.Event()

    async def on_batch(context: Any, events: list[Any]) -> None:  # noqa: ANN401
        if events and tally.add(context.partition_id, events, joined_body):
            done.set()

    client = AioConsumerClient.from_connection_string(conn_str, "$Default")
    task = asyncio.create_task(
        client.receive_batch(
            on_batch,
            max_batch_size=prefetch,
            prefetch=prefetch,
            starting_position="-1",
            track_last_enqueued_event_properties=True,
        )
    )
    await done.wait()
    task.cancel()


def read_with_sync(
    conn_str: str, tally: Tally, prefetch: int, socket_timeout_s: float | None
) -> None:
    """Let Azure's sync client read all partitions, in its one thread."""
    done = threading.Event()

    def on_batch(context: Any, events: list[Any]) -> None:  # noqa: ANN401
        if events and tally.add(context.partition_id, events, joined_body):
            done.set()

    client = EventHubConsumerClient.from_connection_string(
        conn_str, "$Default", socket_timeout=socket_timeout_s
    )
    threading.Thread(
        target=client.receive_batch,
        args=(on_batch,),
        kwargs={
            "max_batch_size": prefetch,
            "prefetch": prefetch,
            "starting_position": "-1",
            "track_last_enqueued_event_properties": True,
        },
        daemon=True,
    ).start()
    done.wait()


def read_with_threads(conn_str: str, tally: Tally, prefetch: int) -> None:
    """Give each partition a thread and a sync client, as a thread-based source would."""
    done = threading.Event()

    def on_batch(context: Any, events: list[Any]) -> None:  # noqa: ANN401
        if events and tally.add(context.partition_id, events, joined_body):
            done.set()

    for number in range(tally.partition_count):
        client = EventHubConsumerClient.from_connection_string(
            conn_str, "$Default", socket_timeout=0.005
        )
        threading.Thread(
            target=client.receive_batch,
            args=(on_batch,),
            kwargs={
                "partition_id": str(number),
                "max_batch_size": prefetch,
                "prefetch": prefetch,
                "starting_position": "-1",
                "track_last_enqueued_event_properties": True,
            },
            daemon=True,
        ).start()
    done.wait()


def in_a_loop(reader: Callable[..., Awaitable[None]], prefetch: int) -> Callable[..., None]:
    """Make an asynchronous reader an ordinary function."""

    async def run(conn_str: str, tally: Tally) -> None:
        await reader(conn_str, tally, prefetch)

    return lambda conn_str, tally: asyncio.run(run(conn_str, tally))


CANDIDATES: Final[dict[str, Callable[..., None]]] = {
    "eventproc": in_a_loop(read_with_eventproc, EventHubOptions().prefetch),
    "eventproc-300": in_a_loop(read_with_eventproc, 300),
    "eventproc-3000": in_a_loop(read_with_eventproc, 3000),
    "azure-aio": in_a_loop(read_with_aio, 300),
    "azure-aio-3000": in_a_loop(read_with_aio, 3000),
    "azure-sync": lambda conn_str, tally: read_with_sync(conn_str, tally, 300, None),
    "azure-sync-5ms": lambda conn_str, tally: read_with_sync(conn_str, tally, 300, 0.005),
    "azure-threads": lambda conn_str, tally: read_with_threads(conn_str, tally, 300),
}
"""The plain names are defaults; a number is the prefetch, ``5ms`` the socket timeout."""


# --- the three processes -------------------------------------------------------------------------


def serve(partition_count: int) -> None:
    """Be the emulator until standard input ends."""
    with EventHubsEmulator({HUB: partition_count}) as emulator:
        print(emulator.connection_string_for(HUB), flush=True)
        sys.stdin.read()


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


def read(candidate: str, conn_str: str, partition_count: int, event_count: int) -> None:
    """Be one reader; print what it saw as JSON."""
    is_timed = event_count < TIMED_BELOW
    tally = Tally(wanted=event_count, partition_count=partition_count, is_timed=is_timed)
    cpu = time.process_time()
    CANDIDATES[candidate](conn_str, tally)
    elapsed = time.monotonic() - tally.first
    latencies = sorted(tally.latencies) or [0.0]
    print(
        json.dumps(
            {
                "events_per_s": round(tally.count / elapsed),
                "cpu_us_per_event": round(1e6 * (time.process_time() - cpu) / tally.count, 1),
                "first_event_s": round(tally.first - tally.begun, 3),
                "all_partitions_s": round(max(tally.all_partitions - tally.begun, 0), 3),
                "latency_p50_ms": round(1e3 * latencies[len(latencies) // 2], 1),
                "latency_p99_ms": round(1e3 * latencies[len(latencies) * 99 // 100], 1),
            }
        ),
        flush=True,
    )
    sys.stdout.flush()


@dataclass(frozen=True, kw_only=True)
class Result:
    """One line of the report."""

    candidate: str
    partitions: int
    events_per_s: int
    cpu_us_per_event: float
    first_event_s: float
    all_partitions_s: float
    latency_p50_ms: float
    latency_p99_ms: float


def start(*arguments: str) -> subprocess.Popen[str]:
    """Start this program in another of its roles."""
    return subprocess.Popen(
        [sys.executable, __file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], timeout_s: float) -> dict[str, Any]:
    """Return what a reader printed; it is killed, since Azure's clients take their time to end."""
    assert process.stdout is not None
    timer = threading.Timer(timeout_s, process.kill)
    timer.start()
    line = process.stdout.readline()
    timer.cancel()
    process.kill()
    process.wait()
    return dict(json.loads(line)) if line else {}


def measure(candidate: str, options: argparse.Namespace, partition_count: int) -> Result:
    """Let one candidate read a backlog and then a trickle."""
    role = ["--role", "reader", "--candidates", candidate, "--partitions", str(partition_count)]
    found: dict[str, Any] = {}
    for kind, event_count in (("backlog", options.events), ("trickle", options.trickle)):
        emulator = start("--role", "emulator", "--partitions", str(partition_count))
        assert emulator.stdout is not None
        conn_str = emulator.stdout.readline().strip()
        reading = ["--conn-str", conn_str, "--events", str(event_count)]
        try:
            if kind == "backlog":
                fill(conn_str, partition_count, event_count, options.body)
                answer = finish(start(*role, *reading), 120)
                found |= {k: v for k, v in answer.items() if not k.startswith("latency")}
            else:
                reader = start(*role, *reading)
                time.sleep(4 + partition_count / 8)  # they all have to be attached
                trickle(conn_str, event_count, options.body)
                answer = finish(reader, 60)
                found |= {k: v for k, v in answer.items() if k.startswith("latency")}
        finally:
            emulator.kill()
            emulator.wait()
    missing = {name: 0 for name in Result.__dataclass_fields__ if name not in found}
    return Result(**(missing | found | {"candidate": candidate, "partitions": partition_count}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--candidates", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    parser.add_argument("--partitions", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--events", type=int, default=192_000, help="in the backlog")
    parser.add_argument("--trickle", type=int, default=100, help="events in the trickle")
    parser.add_argument("--body", type=int, default=100, help="bytes in an event")
    parser.add_argument("--role", choices=("emulator", "reader"), help=argparse.SUPPRESS)
    parser.add_argument("--conn-str", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "emulator":
        serve(options.partitions[0])
        return
    if options.role == "reader":
        read(options.candidates[0], options.conn_str, options.partitions[0], options.events)
        return
    results = []
    for partition_count in options.partitions:
        for candidate in options.candidates:
            results.append(measure(candidate, options, partition_count))
            if options.format == "table":
                if len(results) == 1:
                    print(" | ".join(Result.__dataclass_fields__))
                print(" | ".join(str(value) for value in asdict(results[-1]).values()), flush=True)
    if options.format == "json":
        print(json.dumps([asdict(result) for result in results], indent=2))


if __name__ == "__main__":
    main()

"""The cost of an event of a stream: RabbitStreams beside a bare rstream consumer, on one broker.

    python benchmarks/rabbitmq.py                     # a table
    python benchmarks/rabbitmq.py --format json       # for programs

The broker is a process of its own, and so is each reader. *bare* is rstream's ``Consumer`` with a
subscription for each stream, which is given the encoded bytes of each message and counts them;
*bare, decoded* the same with rstream's own decoder, which finds the body. *source* is
``RabbitStreams`` with a receiver for each stream, which reads number and body of each event;
*processor* a whole ``EventProcessor`` with a store in memory. Only a backlog is read: processor
time of the reading process for each event, and events per second; of three runs that with the least
CPU time, which other work disturbed least.
"""

import argparse
import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, Final
from urllib.parse import urlsplit

from rstream import AMQPMessage, Consumer, Producer, amqp_decoder
from rstream.client import Client

from benchmarks._backlog import child, cost_of, read_processor, read_source
from benchmarks._rows import Cell, Row, options, print_progress, print_rows
from eventproc import EventPosition, EventProcessorConfig
from eventproc.sources.rabbitmq.streams import RabbitStreams
from tests.servers.rabbitmq_broker import RabbitMqBroker

NAME: Final = "bench"
RUNS: Final = 3
CANDIDATES: Final = ("bare", "bare, decoded", "source", "processor")


def streams(partitions: int) -> list[str]:
    return [f"{NAME}-{number}" for number in range(partitions)]


def server(url: str) -> dict[str, Any]:
    """Return the settings of rstream's clients."""
    parts = urlsplit(url)
    return {
        "host": parts.hostname,
        "port": parts.port,
        "username": parts.username,
        "password": parts.password,
    }


def source_of(url: str, partitions: int) -> RabbitStreams:
    return RabbitStreams(url, stream=NAME, streams=streams(partitions))


# --- the readers: each in a process of its own ---------------------------------------------------


async def read_bare(url: str, partitions: int, events: int, *, is_decoded: bool) -> int:
    """Read a backlog with rstream alone; return a sum, as a proof that it was read."""
    total = seen = 0
    done = asyncio.Event()

    def on_message(message: Any, context: Any) -> None:  # noqa: ANN401 - as rstream has it
        nonlocal total, seen
        total += context.offset + (len(message.body) if is_decoded else len(message))
        seen += 1
        if seen == events:
            done.set()

    async with Consumer(**server(url)) as consumer:
        for stream in streams(partitions):
            await consumer.subscribe(
                stream, on_message, decoder=amqp_decoder if is_decoded else None
            )
        await done.wait()
    return total


def read(candidate: str, url: str, partitions: int, events: int) -> dict[str, Cell]:
    """Read all events; return the cost."""
    source = source_of(url, partitions)
    config = EventProcessorConfig(initial_position=EventPosition.earliest())
    readers: dict[str, Callable[[], Coroutine[Any, Any, int]]] = {
        "bare": lambda: read_bare(url, partitions, events, is_decoded=False),
        "bare, decoded": lambda: read_bare(url, partitions, events, is_decoded=True),
        "source": lambda: read_source(source, partitions, events),
        "processor": lambda: read_processor(source, events, config),
    }
    found = cost_of(lambda: asyncio.run(readers[candidate]()), events)
    return found | ({"sum": None} if candidate == "bare" else {})


# --- the parent ----------------------------------------------------------------------------------


async def fill(url: str, partitions: int, events: int, body: int) -> None:
    """Create the streams, and publish the backlog."""
    given = server(url)
    client = Client(given["host"], given["port"], frame_max=1 << 20, heartbeat=60)
    await client.start()
    await client.authenticate("/", given["username"], given["password"])
    for stream in streams(partitions):
        await client.create_stream(stream)
    await client.close()
    async with Producer(**given) as producer:
        for stream in streams(partitions):
            for _ in range(events // partitions // 100):
                batch = [AMQPMessage(body=b"x" * body) for _ in range(100)]
                await producer.send_batch(stream, batch)
    async with source_of(url, partitions) as source:
        for number in range(partitions):
            wanted = events // partitions - 1
            while True:
                found = await source.partition_properties(str(number))
                if found.last_enqueued_sequence_number >= wanted:
                    break
                await asyncio.sleep(0.1)


def measure(partitions: int, events: int, body: int) -> list[Row]:
    """Fill a new broker, and read it with each candidate in turn."""
    rows: list[Row] = []
    with RabbitMqBroker() as broker:
        url = broker.stream_url
        events -= events % (100 * partitions)
        asyncio.run(fill(url, partitions, events, body))
        for candidate in CANDIDATES:
            print_progress(f"{candidate}: {partitions} partitions, {events} events of {body} bytes")
            runs = [child(__file__, candidate, url, partitions, events) for _ in range(RUNS)]
            found = min(runs, key=lambda run: float(run["cpu_us_per_event"] or 0))
            size: Row = {"partitions": partitions, "body": body, "events": events}
            rows.append({"candidate": candidate, **size, **found})
    assert len({row.get("sum") for row in rows} - {None}) == 1, "not all read the same"
    return [{name: cell for name, cell in row.items() if name != "sum"} for row in rows]


def parsed() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--partitions", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--body", nargs="+", type=int, default=[100, 1000], help="bytes")
    parser.add_argument("--events", type=int, default=192_000, help="in the backlog")
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = parsed()
    if given.reader:
        print(json.dumps(read(*json.loads(given.reader))))
        return
    sizes = [(p, b) for p in given.partitions for b in given.body]
    sizes, events = ([(1, 100)], 6_400) if given.quick else (sizes, given.events)
    rows = [row for partitions, body in sizes for row in measure(partitions, events, body)]
    print_rows(rows, given.format, "RabbitMQ streams: the cost of an event")


if __name__ == "__main__":
    main()

"""The cost of a Kafka event: KafkaEventSource beside a bare ``consume`` loop, on one broker.

    python benchmarks/kafka.py                     # a table
    python benchmarks/kafka.py --format json       # for programs
    python benchmarks/kafka.py --rounds 5          # medians, and ratios to the loop of each round
    python benchmarks/kafka.py --freeze            # with gc.freeze() after the imports

The broker (Apache Kafka, one node) is a process of its own, and so is each reader. *bare* is
librdkafka's consumer with all partitions assigned, which reads offset and value and does nothing
else; *source* is
``KafkaEventSource`` with a receiver for each partition, which reads the same of each event;
*processor* is a whole ``EventProcessor`` with a store in memory, in batches of up to 1,000 as in
the loop, *columns* the same with a handler of columns, in batches of up to 10,000. Only a backlog
is read: processor time of the reading process for each event, librdkafka's threads and the start
included, and events per second. *Times bare* is the processor time in relation to that of the loop
in the same round.
"""

import argparse
import asyncio
import gc
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks._backlog import (
    BARE,
    BATCH,
    child,
    compared,
    cost_of,
    read_processor,
    read_source,
)
from benchmarks._rows import Cell, Row, options, print_rows
from eventproc import EventPosition, EventProcessorConfig
from eventproc.sources.kafka import KafkaEventSource
from tests.servers.kafka_broker import KafkaBroker

TOPIC: Final = "bench"
CANDIDATES: Final = (BARE, "source", "processor", "columns")


# --- the readers: each in a process of its own ---------------------------------------------------


def consumer_of(servers: str) -> Consumer:
    """Return a consumer with the settings of the source."""
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bare",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
            "log_level": 0,
        }
    )


def read_bare(servers: str, partitions: int, events: int) -> int:
    """Read a backlog with librdkafka alone; return a sum, as a proof that it was read."""
    consumer = consumer_of(servers)
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(partitions)])
    seen = total = 0
    while seen < events:
        first = consumer.poll(1)
        for message in [first, *consumer.consume(BATCH - 1, timeout=0)] if first else ():
            assert message.error() is None, message.error()
            total += (message.offset() or 0) + len(message.value() or b"")
            seen += 1
    consumer.close()
    return total


def read(
    candidate: str, servers: str, partitions: int, events: int, settings: dict[str, bool]
) -> dict[str, Cell]:
    """Read all events; return the cost."""
    if settings["freeze"]:
        gc.freeze()
    source = KafkaEventSource(servers, topic=TOPIC)
    config = EventProcessorConfig(initial_position=EventPosition.earliest())
    readers: dict[str, Callable[[], int]] = {
        BARE: lambda: read_bare(servers, partitions, events),
        "source": lambda: asyncio.run(read_source(source, partitions, events)),
        "processor": lambda: asyncio.run(
            read_processor(source, events, replace(config, batch_size_max=BATCH))
        ),
        "columns": lambda: asyncio.run(
            read_processor(source, events, replace(config, batch_size_max=10_000), as_columns=True)
        ),
    }
    return cost_of(readers[candidate], events)


# --- the parent ----------------------------------------------------------------------------------


def fill(servers: str, partitions: int, events: int, body: int) -> None:
    """Create the topic, and publish the backlog."""
    settings: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0}
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(TOPIC, num_partitions=partitions)])[TOPIC].result(20)
    settings |= {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    producer = Producer(settings)
    for number in range(events):
        producer.produce(TOPIC, b"x" * body, partition=number % partitions)
        if number % BATCH == 0:
            producer.poll(0)
    producer.flush(120)


def measure(partitions: int, events: int, body: int, given: argparse.Namespace) -> list[Row]:
    """Fill a new broker, and read it with each candidate in turn, in several rounds."""
    events -= events % partitions
    settings = {"freeze": given.freeze}
    with KafkaBroker() as broker:
        servers = broker.bootstrap_servers
        fill(servers, partitions, events, body)
        return compared(
            given.candidates,
            given.rounds,
            lambda candidate: child(__file__, candidate, servers, partitions, events, settings),
            {"partitions": partitions, "body": body, "events": events},
        )


def parsed() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--partitions", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--bodies", nargs="+", type=int, default=[100, 1000], help="bytes")
    parser.add_argument("--events", type=int, default=192_000, help="in the backlog")
    parser.add_argument("--candidates", nargs="+", choices=CANDIDATES, default=CANDIDATES)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--freeze", action="store_true", help="call gc.freeze() after the imports")
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = parsed()
    if given.reader:
        print(json.dumps(read(*json.loads(given.reader))))
        return
    rows: list[Row] = []
    sizes = [(p, b) for p in given.partitions for b in given.bodies]
    sizes, events = ([(1, 100)], 6_400) if given.quick else (sizes, given.events)
    for partitions, body in sizes:
        rows += measure(partitions, events, body, given)
    print_rows(rows, given.format, "Kafka: the cost of an event")


if __name__ == "__main__":
    main()

"""The cost of a message of partition queues: RabbitQueues beside bare aio-pika, on one broker.

    python benchmarks/queues.py                     # a table
    python benchmarks/queues.py --format json       # for programs

The broker is a process of its own, and so is each reader. *bare* is aio-pika's ``Queue.consume``
with the same prefetch, which reads tag and body of each message, acknowledges every 500th with all
before it, and does nothing else; *source* is ``RabbitQueues`` with a receiver for each queue, which
reads the same of each event and settles every 500; *processor* is a whole ``EventProcessor`` with a
store in memory. Only a backlog is read: CPU time of the reading process for each message, how
many times that of *bare* it is, and messages per second.
"""

import argparse
import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import aio_pika
from aio_pika.abc import AbstractIncomingMessage

from benchmarks._backlog import BARE, child, compared, cost_of, read_processor
from benchmarks._rows import Cell, Row, options, print_rows
from eventproc import EventPosition, EventProcessorConfig, ReceivedEvent
from eventproc.sources.rabbitmq import QueueOptions, QueuePublisher, RabbitQueues
from tests.servers.rabbitmq_broker import RabbitMqBroker

PREFIX: Final = "Bench"
PREFETCH: Final = QueueOptions().prefetch
ACKNOWLEDGED: Final = PREFETCH // 2
CANDIDATES: Final = (BARE, "source", "processor")


# --- the readers: each in a process of its own ---------------------------------------------------


async def read_bare(url: str, queues: int, messages: int) -> int:
    """Read a backlog with aio-pika alone; return a sum, as a proof that it was read."""
    total = seen = 0
    done = asyncio.Event()

    async def add(message: AbstractIncomingMessage) -> None:
        nonlocal total, seen
        tag = message.delivery_tag or 0
        total += len(message.body)
        seen += 1
        if tag % ACKNOWLEDGED == 0:
            await message.ack(multiple=True)
        if seen == messages:
            done.set()

    async with await aio_pika.connect(url) as connection:
        for number in range(queues):
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=PREFETCH)
            queue = await channel.get_queue(f"{PREFIX}-P{number}")
            await queue.consume(add)
        await done.wait()
    return total


async def read_source(url: str, queues: int, messages: int) -> int:
    """Do the same with ``RabbitQueues``."""
    total = 0

    async def read(source: RabbitQueues, partition: int) -> None:
        nonlocal total
        receiver = await source.open_receiver("g", str(partition), EventPosition.earliest())
        left, settled = messages // queues, 0
        while left > 0:
            events = await receiver.receive(events_max=PREFETCH, wait_max=timedelta(seconds=5))
            for event in events:
                total += len(event.body)
                left -= 1
                if event.sequence_number + 1 - settled >= ACKNOWLEDGED:
                    settled = event.sequence_number + 1
                    receiver.settle(event.sequence_number)

    async with RabbitQueues(url, prefix=PREFIX, count=queues) as source:
        await asyncio.gather(*(read(source, partition) for partition in range(queues)))
    return total


def sizes(events: Sequence[ReceivedEvent]) -> int:
    """Read the body of each event."""
    return sum(len(event.body) for event in events)


def read(candidate: str, url: str, queues: int, messages: int) -> dict[str, Cell]:
    """Read all messages; return the cost."""
    source, config = RabbitQueues(url, prefix=PREFIX, count=queues), EventProcessorConfig()
    readers: dict[str, Callable[[], Coroutine[Any, Any, int]]] = {
        BARE: lambda: read_bare(url, queues, messages),
        "source": lambda: read_source(url, queues, messages),
        "processor": lambda: read_processor(source, messages, config, sizes),
    }
    return cost_of(lambda: asyncio.run(readers[candidate]()), messages)


# --- the parent ----------------------------------------------------------------------------------


async def fill(url: str, queues: int, messages: int, body: int) -> None:
    """Publish the backlog to new queues, evenly."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        for number in range(queues):
            await channel.queue_delete(f"{PREFIX}-P{number}")
        async with QueuePublisher(url, prefix=PREFIX, count=queues):
            message = aio_pika.Message(b"x" * body)
            for first in range(0, messages, 1000):
                await asyncio.gather(
                    *(
                        channel.default_exchange.publish(message, f"{PREFIX}-P{number % queues}")
                        for number in range(first, min(first + 1000, messages))
                    )
                )


def measure(broker: RabbitMqBroker, queues: int, messages: int, body: int) -> list[Row]:
    """Read a new backlog with each candidate in turn."""
    messages -= messages % queues

    def run(candidate: str) -> Mapping[str, Cell]:
        asyncio.run(fill(broker.url, queues, messages, body))
        return child(__file__, candidate, broker.url, queues, messages)

    return compared(CANDIDATES, 1, run, {"queues": queues, "body": body, "events": messages})


def parsed() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--queues", nargs="+", type=int, default=[1, 12])
    parser.add_argument("--bodies", nargs="+", type=int, default=[100, 1000], help="bytes")
    parser.add_argument("--events", type=int, default=48_000, help="in the backlog")
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = parsed()
    if given.reader:
        print(json.dumps(read(*json.loads(given.reader))))
        return
    rows: list[Row] = []
    cases = [(queues, body) for queues in given.queues for body in given.bodies]
    cases, messages = ([(1, 100)], 6_000) if given.quick else (cases, given.events)
    with RabbitMqBroker() as broker:
        for queues, body in cases:
            rows += measure(broker, queues, messages, body)
    print_rows(rows, given.format, "Partition queues: the cost of a message")


if __name__ == "__main__":
    main()

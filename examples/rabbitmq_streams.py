"""RabbitMQ streams: what each customer ordered is a state, which survives a restart.

It starts a broker of its own, which `make rabbitmq` fetches.
"""

import asyncio
import json
from urllib.parse import urlsplit

from rstream import AMQPMessage, Producer

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import EventProcessor, PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.sources.rabbitmq.streams import RabbitStreams, StreamOptions
from tests.servers.rabbitmq_broker import RabbitMqBroker

STREAM, COUNT = "orders", 60
OPTIONS = StreamOptions(key="property:customer")
handled = asyncio.Semaphore(0)
ACCOUNT = MemoryAccount()


class Orders(PartitionHandler):
    """Adds up what each customer ordered; the sums are stored with the position."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Add one order."""
        sums = json.loads(context.state or b"{}")
        sums[event.partition_key] = sums.get(event.partition_key, 0) + int(event.body)
        context.state = json.dumps(sums).encode()
        print(sums)
        handled.release()


async def publish(producer: Producer) -> None:
    """Publish orders of three customers; each is confirmed before the next one is sent."""
    for number in range(COUNT):
        by = {"customer": ("anna", "ben", "cleo")[number % 3]}
        order = AMQPMessage(body=b"%d" % number, application_properties=by)
        await producer.send_wait(STREAM, order)


async def main(url: str) -> None:
    """Publish and process twice; the second processor goes on where the first one stopped."""
    at = urlsplit(url)
    async with Producer(str(at.hostname), at.port, username="guest", password="guest") as producer:
        await producer.create_stream(STREAM)
        for _ in range(2):
            source = RabbitStreams(url, stream=STREAM, options=OPTIONS)
            store = MemoryCheckpointStore(ACCOUNT)
            async with EventProcessor(source=source, store=store, handler=Orders):
                await publish(producer)
                for _ in range(COUNT):
                    await handled.acquire()


with RabbitMqBroker() as broker:
    asyncio.run(main(broker.stream_url))

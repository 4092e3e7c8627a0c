"""Publishes at a steady rate to all partitions, until told to stop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient

from eventproc._base.tasks import cancellation_kept

PERIOD_S = 0.1


@asynccontextmanager
async def publishing(connection_string: str, partitions: int, rate: float) -> AsyncIterator[None]:
    """Publish *rate* events per second for as long as the block lasts."""
    count = round(rate * PERIOD_S / partitions)

    async def publish() -> None:
        client = EventHubProducerClient.from_connection_string(connection_string)
        async with client:
            while True:
                for partition_id in range(partitions):
                    with cancellation_kept():
                        await client.send_batch(
                            [EventData(b"order") for _ in range(count)],
                            partition_id=str(partition_id),
                        )
                await asyncio.sleep(PERIOD_S)

    task = asyncio.create_task(publish())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

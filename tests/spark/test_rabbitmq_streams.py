"""RabbitMQ streams in a real Spark: exact ranges over gaps, checkpoints of processors, the sink."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rstream.client import Client

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import EventPosition, EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.models import ConsumerGroup
from tests.integration.sources.rabbitmq_streams import SuperStream
from tests.spark.conftest import Place, Stream, places

pytestmark = pytest.mark.long

HALF = [b"%d" % number for number in range(6)]
"""Events that are published to each of the two partitions, before the gap and after it."""


@dataclass
class Streams:
    """A super stream with a gap in each partition, and what its partitions have."""

    hub: SuperStream
    folder: Path
    places: list[Place] = field(default_factory=list)

    @property
    def options(self) -> dict[str, str]:
        return {"sourceRecipe": "stream_recipes:orders"}

    async def create(self) -> None:
        await self.hub.create()
        await self.publish(*HALF)

    async def fill(self) -> None:
        """Publish the other half after a gap, and note what there is."""
        await self.take_offset()
        await self.publish(*HALF)
        async with self.hub.source() as source:
            for partition in ("0", "1"):
                receiver = await source.open_receiver("g", partition, EventPosition.earliest())
                own: list[Place] = []
                while len(own) < 2 * len(HALF):
                    events = await receiver.receive(events_max=100, wait_max=timedelta(seconds=5))
                    own += [(partition, event.sequence_number) for event in events]
                self.places += own
                await receiver.close()

    async def publish(self, *bodies: bytes) -> None:
        for partition in range(2):
            await self.hub.publish(partition, bodies, headers={"customer": "anna"})

    async def take_offset(self) -> None:
        """Store another consumer's offset at the broker, which takes one of each stream."""
        url = urlsplit(self.hub.broker.stream_url)
        client = Client(str(url.hostname), url.port or 0, frame_max=1 << 20, heartbeat=60)
        await client.start()
        await client.authenticate("/", "guest", "guest")
        for partition in range(2):
            await client.store_offset(self.hub.stream(partition), "other", 1)
        await asyncio.sleep(0.5)  # it has no answer
        await client.close()


@pytest.fixture(name="streams")
def _streams(rabbitmq, shared_folder, request) -> Streams:
    for path in shared_folder.iterdir():
        path.unlink()
    hub = SuperStream(rabbitmq, f"spark-{request.node.name[:20]}", 2)
    (shared_folder / "stream").write_text(f"{rabbitmq.stream_url} {hub.name}")
    streams = Streams(hub, shared_folder)
    asyncio.run(streams.create())
    return streams


@pytest.fixture(name="query")
def _query(spark: SparkSession, streams: Streams, tmp_path: Path) -> Iterator[Any]:
    def make(**options: str) -> Stream:
        return Stream(spark, tmp_path / "location", streams.options | options)

    yield make
    for query in spark.streams.active:
        query.stop()


def test_a_batch_reads_exact_ranges_across_a_gap(spark, streams):
    """Offsets that the broker took for itself are no loss; tasks may share a partition."""
    asyncio.run(streams.fill())
    reader = spark.read.format("eventproc").options(**streams.options)
    everything = reader.load().collect()
    part = reader.options(startingPosition="3", endingPosition="9", maxEventsPerTask="2").load()
    (row, *_) = sorted(everything, key=lambda row: (row["partition"], row["sequenceNumber"]))

    assert places(everything) == streams.places
    assert max(number for _, number in streams.places) > 2 * len(HALF) - 1, "there was no gap"
    assert places(part.collect()) == [place for place in streams.places if 3 <= place[1] < 9]
    assert (bytes(row["body"]), row["offset"], row["partitionKey"]) == (b"0", "stream:0", "anna")


def test_a_query_continues_at_the_checkpoints_of_processors(streams, query, tmp_path):
    """The processors' positions are used, and each later event comes in exactly one batch."""
    store = tmp_path / "group.db"
    handled = asyncio.run(run_processor(streams, store))
    asyncio.run(streams.fill())
    reading = query(
        startingPositions="checkpoints",
        checkpointStore=f"sqlite:{store}",
        maxEventsPerTrigger="4",
    )
    reading.run()
    asyncio.run(streams.publish(b"more", b"and more"))
    reading.run()
    seen = reading.seen()

    assert len(handled) == 2 * len(HALF)
    assert set(streams.places) < {*handled, *seen}
    assert len(handled) + len(seen) == len({*handled, *seen}) == 4 * len(HALF) + 4
    assert len(reading.batches) > 3


async def run_processor(streams: Streams, store: Path) -> list[Place]:
    """Run a processor until it has handled what there is."""
    handled: list[Place] = []
    done = asyncio.Event()

    class Orders(PartitionHandler):
        async def process_events(self, context, events):
            handled.extend((context.partition_id, event.sequence_number) for event in events)
            if len(handled) >= 2 * len(HALF):
                done.set()

    processor = EventProcessor(
        source=streams.hub.source(),
        store=SqliteCheckpointStore(store),
        handler=Orders,
        config=EventProcessorConfig(initial_position=EventPosition.earliest()),
    )
    async with processor:
        await done.wait()
    return handled


async def checkpoints(streams: Streams) -> dict[str, tuple[str | None, bytes | None]]:
    """Return offset and state of each partition of the sink's group."""
    group = ConsumerGroup(fully_qualified_namespace="broker", eventhub_name="orders")
    async with SqliteCheckpointStore(streams.folder / "group.db") as store:
        found = [await store.read_checkpoint(group, partition) for partition in ("0", "1")]
    return {one.partition_id: (one.offset, one.state) for one in found if one is not None}


def sink(rows: Any, location: Path) -> None:
    """Hand rows to a handler that adds up their bodies, and wait until all have been handled."""
    writer = rows.writeStream.format("eventproc").options(
        handler="sink_handlers:Orders",
        checkpointStore="sink_handlers:store",
        fullyQualifiedNamespace="broker",
        eventHubName="orders",
        checkpointLocation=str(location),
    )
    writer.trigger(availableNow=True).start().awaitTermination()


def test_the_sink_commits_positions_and_state_of_streams(spark, streams, emulator, tmp_path):
    """And rows of another protocol are refused in that group."""
    asyncio.run(streams.fill())
    sink(
        spark.readStream.format("eventproc")
        .options(**streams.options, startingPosition="earliest")
        .load(),
        tmp_path / "sink",
    )
    found = asyncio.run(checkpoints(streams))
    total = 2 * sum(map(int, HALF))
    last = {partition: f"stream:{number}" for partition, number in streams.places}
    amqp = spark.readStream.format("eventproc").options(
        connectionString=emulator.connection_string_for("orders"), startingPosition="earliest"
    )
    with pytest.raises(PySparkException, match="cannot be used for events over amqp"):
        sink(amqp.load(), tmp_path / "other")

    assert found == {p: (offset, b"%d" % total) for p, offset in last.items()}
    assert asyncio.run(checkpoints(streams)) == found

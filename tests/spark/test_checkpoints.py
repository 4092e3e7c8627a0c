"""A consumer group moves from processors to Spark: its checkpoints are where the query begins."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.emulator import EventHubsEmulator
from eventproc.sources.eventhubs import EventHubSource
from tests.spark.conftest import COUNT, HUB, Place, expected, places, publish

ENOUGH = 130


class Orders(PartitionHandler):
    """Notes what it handled."""

    handled: list[Place]
    enough: asyncio.Event

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order."""
        self.handled += [(context.partition_id, event.sequence_number) for event in events]
        if len(self.handled) >= ENOUGH:
            self.enough.set()


async def run_processor(emulator: EventHubsEmulator, store: Path) -> list[Place]:
    """Let a processor handle some events and stop as it should; return which."""
    Orders.handled = []
    Orders.enough = asyncio.Event()
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(emulator.connection_string_for(HUB)),
        store=SqliteCheckpointStore(store),
        handler=Orders,
        consumer_group="$Default",
        config=EventProcessorConfig(batch_size_max=25),
    )
    async with processor:
        await Orders.enough.wait()
    return Orders.handled


async def test_a_query_goes_on_where_processors_stopped(stream, emulator, tmp_path):
    """Nothing is missed and nothing repeated; a partition without a checkpoint is read whole."""
    store = tmp_path / "group.db"
    handled = await run_processor(emulator, store)
    publish(emulator, "1", *[b"more"] * 50)
    publish(emulator, "2", b"first")
    reading = stream(startingPositions="checkpoints", checkpointStore=f"sqlite:{store}")
    reading.run()

    assert len(handled) >= ENOUGH
    assert sorted([*handled, *reading.seen()]) == [
        *expected("0", 0, COUNT),
        *expected("1", 0, COUNT + 50),
        ("2", 0),
    ]


async def test_what_is_not_handled_yet_can_be_read_as_a_batch(spark, emulator, tmp_path):
    """To look at a group's backlog, or to repeat what it has handled."""
    store = tmp_path / "group.db"
    handled = await run_processor(emulator, store)
    options = {
        "connectionString": emulator.connection_string_for(HUB),
        "checkpointStore": f"sqlite:{store}",
    }
    publish(emulator, "2", *[b"first"] * 7)

    def read(**positions: str) -> list[Place]:
        reader = spark.read.format("eventproc").options(**options, **positions)
        return places(reader.schema("partition string, sequenceNumber long").load().collect())

    backlog, repeated = read(startingPositions="checkpoints"), read(endingPositions="checkpoints")

    assert repeated == sorted(handled)
    assert sorted([*backlog, *repeated]) == [
        *expected("0", 0, COUNT),
        *expected("1", 0, COUNT),
        *expected("2", 0, 7),
    ]

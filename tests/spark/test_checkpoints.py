"""``startingPositions=checkpoints``: a query begins at the checkpoints of a consumer group."""

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

STOP_AT = 130


class Orders(PartitionHandler):
    """Records what it handled."""

    handled: list[Place]
    has_enough: asyncio.Event

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order."""
        self.handled += [(context.partition_id, event.sequence_number) for event in events]
        if len(self.handled) >= STOP_AT:
            self.has_enough.set()


async def run_processor(emulator: EventHubsEmulator, store: Path) -> list[Place]:
    """Run a processor until it has handled some events, and stop it; return their places."""
    Orders.handled = []
    Orders.has_enough = asyncio.Event()
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(emulator.connection_string_for(HUB)),
        store=SqliteCheckpointStore(store),
        handler=Orders,
        consumer_group="$Default",
        config=EventProcessorConfig(batch_size_max=25),
    )
    async with processor:
        await Orders.has_enough.wait()
    return Orders.handled


async def test_a_query_continues_at_the_checkpoints_of_processors(stream, emulator, tmp_path):
    """No event is missed or repeated; a partition without a checkpoint is read from its
    beginning."""
    store = tmp_path / "group.db"
    handled = await run_processor(emulator, store)
    publish(emulator, "1", *[b"more"] * 50)
    publish(emulator, "2", b"first")
    reading = stream(startingPositions="checkpoints", checkpointStore=f"sqlite:{store}")
    reading.run()

    assert len(handled) >= STOP_AT
    assert sorted([*handled, *reading.seen()]) == [
        *expected("0", 0, COUNT),
        *expected("1", 0, COUNT + 50),
        ("2", 0),
    ]


async def test_a_batch_can_begin_or_end_at_the_checkpoints(spark, emulator, tmp_path):
    """The batch has the events that the group has not handled yet, or those that it has."""
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

"""One handler and one group's checkpoints: in processors, in a query, in a fleet on executors."""

import asyncio
import json
import re
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from checkpointstores.blob import BlobCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.emulator import EventHubsEmulator
from eventproc.ports import CheckpointStore
from eventproc.sources.eventhubs import EventHubSource
from spark_integration import CheckpointingSink, Secret, SourceRecipe, StoreRecipe, run_on_executors
from tests.spark.conftest import COUNT, HUB, PARTITIONS, expected, publish
from tests.spark.sink_handlers import FOLDER, Orders

SUM = sum(range(COUNT))
CONFIG = EventProcessorConfig(batch_size_max=25)


@pytest.fixture(name="folder")
def _folder(shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path in shared_folder.iterdir():
        path.unlink()
    monkeypatch.setenv(FOLDER, str(shared_folder))
    return shared_folder


def ledger(folder: Path) -> list[dict[str, Any]]:
    complete, _, _ = (folder / "ledger").read_text().rpartition("\n")  # a line may be half written
    return [json.loads(line) for line in complete.splitlines()]


async def process(
    emulator: EventHubsEmulator,
    stores: Sequence[CheckpointStore],
    folder: Path,
    n: int,
) -> None:
    """Run a processor for each store until the ledger has *n* lines, and stop them."""
    async with AsyncExitStack() as stack:
        for store in stores:
            processor = EventProcessor(
                source=EventHubSource.from_connection_string(emulator.connection_string_for(HUB)),
                store=store,
                handler=Orders,
                config=CONFIG,
            )
            await stack.enter_async_context(processor)
        await asyncio.to_thread(wait_for_lines, folder, n)


def wait_for_lines(folder: Path, count: int) -> None:
    """Wait until the ledger has *count* lines."""
    while not (folder / "ledger").exists() or len(ledger(folder)) < count:
        time.sleep(0.02)


async def test_a_group_moves_between_processors_a_query_and_a_fleet(
    spark, emulator, storage, container, folder, spark_logs, tmp_path, capsys
):
    """Two processors, a query, a fleet and a processor serve one group in one blob store in turn.

    Each leaves some events to the next. No event is missed or repeated, and the state is kept. The
    key of the storage account, given as an option and in a recipe, appears in no output.
    """
    hub = emulator.connection_string_for(HUB)
    published = 2 * COUNT

    def more(left: int = 20) -> int:
        """Publish to every partition; return for how many events to wait, so that *left* remain."""
        nonlocal published
        for partition_id in range(PARTITIONS):
            publish(emulator, str(partition_id), *[b"1"] * 20)
        published += 20 * PARTITIONS
        return published - left

    def store() -> BlobCheckpointStore:
        return BlobCheckpointStore.from_connection_string(storage, container)

    def query() -> list[str]:
        names = {
            "connectionString": hub,
            "checkpointStore": f"blob:{container}",
            "storageConnectionString": storage,
        }
        rows = spark.readStream.format("eventproc").options(
            **names, startingPositions="checkpoints"
        )
        writer = rows.load().writeStream.format("eventproc").options(**names)
        writer = writer.option("handler", "sink_handlers:Orders")
        writer = writer.option("checkpointLocation", str(tmp_path / "offsets"))
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
        running.explain(extended=True)
        return [entry.json for entry in running.recentProgress]

    def fleet(lines: int) -> None:
        with run_on_executors(
            spark,
            processors=2,
            source=SourceRecipe(connection=Secret(hub)),
            store=StoreRecipe(spec=f"blob:{container}", storage=Secret(storage)),
            handler="sink_handlers:Orders",
            config=CONFIG,
        ):
            wait_for_lines(folder, lines)

    counts = []
    await process(emulator, [store(), store()], folder, 130)
    counts.append(len(ledger(folder)))
    more()
    progress = query()
    counts.append(len(ledger(folder)))
    await asyncio.to_thread(fleet, more())
    counts.append(len(ledger(folder)))
    await process(emulator, [store()], folder, more(left=0))
    lines = ledger(folder)
    (key,) = re.findall("AccountKey=([^;]+)", storage)
    logs = [path for path in spark_logs.directory.rglob("*") if path.is_file()]
    shown = [capsys.readouterr().out, *progress]
    last_total = {line["partition"]: line["total"] for line in lines}

    assert counts == sorted({*counts}), "each of them handled some events"
    assert sorted((line["partition"], line["number"]) for line in lines) == [
        *expected("0", 0, COUNT + 60),
        *expected("1", 0, COUNT + 60),
        *expected("2", 0, 60),
    ]
    assert last_total == {"0": SUM + 60, "1": SUM + 60, "2": 60}
    assert not any(line["is_replay"] for line in lines)
    assert [text for text in shown if key in text] == []
    assert [path for path in logs if key.encode() in path.read_bytes()] == []


async def test_a_checkpointing_sink_in_foreach_batch_handles_each_event_once(
    spark, stream, emulator, folder
):
    """The handler class is sent by value; a batch that fails after its commit is not handled
    again."""

    class ByValue(PartitionHandler):
        async def process_events(self, context: Any, events: Any) -> None:
            for event in events:
                line = {"partition": context.partition_id, "number": event.sequence_number}
                with (folder / "ledger").open("a") as file:
                    print(json.dumps(line), file=file)

    sink = CheckpointingSink(
        ByValue,
        checkpointStore=f"sqlite:{folder / 'group.db'}",
        connectionString=emulator.connection_string_for(HUB),
    )
    summaries = []
    fails = [False, True]

    def handle(batch: Any, batch_id: int) -> None:
        sink(batch, batch_id)
        summaries.append(sink.last_batch)
        if fails.pop():
            raise RuntimeError("the driver dies")

    reading = stream(startingPosition="earliest")
    rows = spark.readStream.format("eventproc").options(**reading.options).load()
    writer = rows.writeStream.foreachBatch(handle).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(reading.location))
    with pytest.raises(StreamingQueryException, match="the driver dies"):
        writer.start().awaitTermination()
    writer.start().awaitTermination()
    first, second = summaries
    assert first is not None
    assert second is not None

    assert (first.handled_count, first.repeated_count) == (2 * COUNT, 0)
    assert (second.handled_count, second.repeated_count) == (0, 2 * COUNT)
    assert first.query_id == second.query_id
    assert len(ledger(folder)) == 2 * COUNT

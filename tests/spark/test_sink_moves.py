"""The same handler and the same checkpoints, in processors, in a query, and in ``foreachBatch``."""

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from checkpointstores.blob import BlobCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.emulator import EventHubsEmulator
from eventproc.ports import CheckpointStore
from eventproc.sources.eventhubs import EventHubSource
from spark_integration import CheckpointingSink
from tests.spark.conftest import COUNT, HUB, expected, publish
from tests.spark.sink_handlers import FOLDER, Orders

SUM = sum(range(COUNT))


@pytest.fixture(name="folder")
def _folder(shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path in shared_folder.iterdir():
        path.unlink()
    monkeypatch.setenv(FOLDER, str(shared_folder))
    return shared_folder


def ledger(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "ledger").read_text().splitlines()]


async def process(
    emulator: EventHubsEmulator, store: CheckpointStore, folder: Path, n: int
) -> None:
    """Let a processor handle events until the ledger has so many, and stop as it should."""
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(emulator.connection_string_for(HUB)),
        store=store,
        handler=Orders,
        consumer_group="$Default",
        config=EventProcessorConfig(batch_size_max=25),
    )
    async with processor:
        await asyncio.to_thread(wait_for_lines, folder, n)


def wait_for_lines(folder: Path, count: int) -> None:
    """Return when the ledger has so many lines."""
    while not (folder / "ledger").exists() or len(ledger(folder)) < count:
        time.sleep(0.02)


async def test_a_group_moves_from_processors_to_spark_and_back(
    spark, emulator, storage, container, folder, spark_logs, tmp_path, capsys
):
    """Nothing is missed, nothing repeated, and the state goes along; the store is a blob store.

    The storage account's key, which is given as an option, shows nowhere.
    """

    def store() -> BlobCheckpointStore:
        return BlobCheckpointStore.from_connection_string(storage, container)

    await process(emulator, store(), folder, 130)
    in_processor = len(ledger(folder))
    publish(emulator, "2", *[b"2"] * 20)
    names = {
        "connectionString": emulator.connection_string_for(HUB),
        "checkpointStore": f"blob:{container}",
        "storageConnectionString": storage,
    }
    rows = spark.readStream.format("eventproc").options(**names, startingPositions="checkpoints")
    writer = rows.load().writeStream.format("eventproc").options(**names)
    writer = writer.option("handler", "sink_handlers:Orders")
    writer = writer.option("checkpointLocation", str(tmp_path / "offsets"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    query.explain(extended=True)
    in_spark = len(ledger(folder))
    publish(emulator, "0", *[b"1"] * 30)
    await process(emulator, store(), folder, in_spark + 30)
    lines = ledger(folder)
    (key,) = re.findall("AccountKey=([^;]+)", storage)
    logs = [path for path in spark_logs.directory.rglob("*") if path.is_file()]
    shown = [capsys.readouterr().out, *(entry.json for entry in query.recentProgress)]
    last_total = {line["partition"]: line["total"] for line in lines}

    assert 130 <= in_processor < in_spark == 2 * COUNT + 20
    assert sorted((line["partition"], line["number"]) for line in lines) == [
        *expected("0", 0, COUNT + 30),
        *expected("1", 0, COUNT),
        *expected("2", 0, 20),
    ]
    assert last_total == {"0": SUM + 30, "1": SUM, "2": 40}
    assert not any(line["is_replay"] for line in lines)
    assert [text for text in shown if key in text] == []
    assert [path for path in logs if key.encode() in path.read_bytes()] == []


async def test_foreach_batch_does_the_same_by_a_callable(spark, stream, emulator, folder):
    """With a class by value; a batch that failed behind its checkpoints is not handled again."""

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

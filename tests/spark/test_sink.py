"""The sink in a real Spark: handlers on executors, checkpoints by the driver, replays.

The rows come from an emulator, as in a user's program.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import spark_integration
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.emulator import EventHubsEmulator
from eventproc.models import (
    IN_BATCH,
    NOT_BEGUN,
    Checkpoint,
    CheckpointUpdate,
    ConsumerGroup,
    OffsetFormat,
)
from spark_integration._sink.records import TaskId
from spark_integration._sink.store import Checkpoints
from tests.spark.conftest import COUNT, HUB, Place, Stream, expected, publish

GROUP = ConsumerGroup(fully_qualified_namespace="127.0.0.1", eventhub_name=HUB)
SUM = sum(range(COUNT))


@dataclass
class Sink(Stream):
    """A query from the hub into a handler."""

    folder: Path = Path()
    handler: str = "Orders"
    computed: tuple[str, ...] = ()
    """Columns that the query adds, as SQL."""

    def start(self, **trigger: Any) -> Any:
        rows = self.spark.readStream.format("eventproc").options(**self.options).load()
        rows = rows.selectExpr("*", *self.computed)
        writer = rows.writeStream.format("eventproc").options(
            handler=f"sink_handlers:{self.handler}",
            checkpointStore="sink_handlers:store",
            fullyQualifiedNamespace=GROUP.fully_qualified_namespace,
            eventHubName=HUB,
        )
        return writer.option("checkpointLocation", str(self.location)).trigger(**trigger).start()

    def arm(self, name: str) -> None:
        (self.folder / name).touch()

    def ledger(self) -> list[dict[str, Any]]:
        path = self.folder / "ledger"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def handled(self, *, is_replay: bool | None = None) -> list[Place]:
        return [
            (line["partition"], line["number"])
            for line in self.ledger()
            if is_replay in {None, line["is_replay"]}
        ]

    async def checkpoints(self) -> dict[str, Checkpoint]:
        async with SqliteCheckpointStore(self.folder / "group.db") as store:
            listed = await store.list_checkpoints(GROUP)
            read = [await store.read_checkpoint(GROUP, c.partition_id) for c in listed]
        return {checkpoint.partition_id: checkpoint for checkpoint in read if checkpoint}


@pytest.fixture(name="sink")
def _sink(
    spark: SparkSession, emulator: EventHubsEmulator, tmp_path: Path, shared_folder: Path
) -> Iterator[Sink]:
    for path in shared_folder.iterdir():
        path.unlink()
    options = {
        "connectionString": emulator.connection_string_for(HUB),
        "startingPosition": "earliest",
    }
    yield Sink(spark, tmp_path / "checkpoint", options, folder=shared_folder)
    (shared_folder / "stalled").unlink(missing_ok=True)
    for query in spark.streams.active:
        query.stop()


async def test_the_sink_delivers_rows_in_order_and_checkpoints_them(sink, emulator):
    """Each event is handled once, in order; position and state are those of the last one."""
    sink.run()
    publish(emulator, "1", b"7")
    sink.run()
    handled = sink.handled()
    found = await sink.checkpoints()

    assert sorted(handled) == [*expected("0", 0, COUNT), *expected("1", 0, COUNT + 1)]
    assert [place for place in handled if place[0] == "0"] == expected("0", 0, COUNT)
    assert {p: (c.sequence_number, c.state, c.isolation) for p, c in found.items()} == {
        "0": (COUNT - 1, b"%d" % SUM, NOT_BEGUN),
        "1": (COUNT, b"%d" % (SUM + 7), NOT_BEGUN),
    }
    assert sink.handled(is_replay=True) == []


async def test_a_handler_of_columns_gets_arrow_batches(sink):
    """``process_columns`` is called, and checkpoints are those of a handler of events."""
    sink.handler = "Sizes"
    sink.run()
    size = sum(len(str(number)) for number in range(COUNT))
    found = await sink.checkpoints()

    assert {p: (c.sequence_number, c.state) for p, c in found.items()} == {
        "0": (COUNT - 1, b"%d" % size),
        "1": (COUNT - 1, b"%d" % size),
    }


async def test_a_column_that_the_query_computes_reaches_a_handler_of_columns(sink):
    """So that JSON, for example, is parsed once, by Spark. A handler of events is refused."""
    sink.computed = ("cast(string(body) as bigint) as total",)
    sink.handler = "Orders"
    with pytest.raises(StreamingQueryException, match=r"would not get column 'total'.*columns"):
        sink.run()

    sink.handler = "Totals"
    sink.run()
    found = await sink.checkpoints()

    assert {p: c.state for p, c in found.items()} == {"0": b"%d" % SUM, "1": b"%d" % SUM}


async def test_a_query_starts_in_any_thread_that_has_registered_the_format(sink, spark):
    """Spark looks for the format in the session that is active in the thread."""

    def run() -> None:
        spark_integration.register(spark)
        sink.run()

    await asyncio.to_thread(run)

    assert len(sink.handled()) == 2 * COUNT


def fail(sink: Sink) -> str:
    """Run the query until it fails; return the error."""
    with pytest.raises(StreamingQueryException) as caught:
        sink.run()
    return str(caught.value)


async def test_a_batch_without_commit_is_delivered_again_as_a_replay(sink):
    """The state begins where it was committed, so nothing counts twice."""
    sink.arm("die-before-commit")
    fail(sink)
    before = await sink.checkpoints()
    sink.run()
    again = await sink.checkpoints()

    assert all(c.sequence_number == -1 and c.isolation == IN_BATCH for c in before.values())
    assert sorted(sink.handled(is_replay=False)) == [
        *expected("0", 0, COUNT),
        *expected("1", 0, COUNT),
    ]
    assert sorted(sink.handled(is_replay=True)) == [
        *expected("0", 0, COUNT),
        *expected("1", 0, COUNT),
    ]
    assert {c.state for c in again.values()} == {b"%d" % SUM}
    assert {c.isolation for c in again.values()} == {NOT_BEGUN}


async def test_partitions_committed_before_a_crash_are_not_delivered_again(sink):
    """The driver is killed after the first partition: only the others are handled again."""
    sink.arm("die-after-commit")
    fail(sink)
    done = [p for p, c in (await sink.checkpoints()).items() if c.sequence_number == COUNT - 1]
    sink.run()
    found = await sink.checkpoints()

    assert done
    assert not [p for p, _ in sink.handled(is_replay=True) if p in done]
    assert {c.state for c in found.values()} == {b"%d" % SUM}
    assert {(c.sequence_number, c.isolation) for c in found.values()} == {(COUNT - 1, NOT_BEGUN)}


async def test_a_batch_that_spark_repeats_after_its_commit_is_not_handled_again(sink):
    """Spark writes and commits the batch again; the checkpoints cover every row."""
    sink.run()
    sink.lose_last_commit()
    before = await sink.checkpoints()
    sink.run()

    assert len(sink.handled()) == 2 * COUNT
    assert await sink.checkpoints() == before


async def test_a_task_whose_worker_is_killed_is_retried_and_committed_once(sink):
    """The successful attempt is committed; rows that both attempts got are replays in the
    second."""
    sink.arm("die-in-handler")
    sink.run()
    found = await sink.checkpoints()
    replayed = sink.handled(is_replay=True)

    assert {p for p, _ in replayed} < {"0", "1"}
    assert len(replayed) == COUNT
    assert {c.state for c in found.values()} == {b"%d" % SUM}
    assert {(c.sequence_number, c.isolation) for c in found.values()} == {(COUNT - 1, NOT_BEGUN)}


async def test_a_driver_that_was_paused_is_fenced(sink, spark):
    """Another driver has handled the batch meanwhile: this one writes nothing and raises
    ``FencedError``."""
    sink.arm("stall-in-commit")
    query = sink.start(availableNow=True)
    stalled = sink.folder / "stalled"
    wait_for(stalled)
    await take_over(sink, query.id)
    before = await sink.checkpoints()
    stalled.unlink()
    with pytest.raises(StreamingQueryException, match="FencedError"):
        query.awaitTermination()
    after = await sink.checkpoints()

    assert {c.sequence_number for c in before.values()} == {COUNT - 1}
    assert after == before
    assert {c.writer.split("/")[3] for c in after.values()} == {"other"}


def wait_for(path: Path) -> None:
    """Wait until a worker has created a file."""
    while not path.exists():
        time.sleep(0.02)


async def take_over(sink: Sink, query_id: str) -> None:
    """Do with the batch what a second driver of the query does, without a second Java."""
    async with SqliteCheckpointStore(sink.folder / "group.db") as store:
        for number, checkpoint in enumerate((await sink.checkpoints()).values()):
            task = TaskId(query_id=query_id, batch_id=0, run_id="other", task=number)
            mine = Checkpoints(store, GROUP, timedelta(seconds=5))
            found = await mine.read(checkpoint.partition_id, task, OffsetFormat.AMQP)
            assert found is not None
            begun = await mine.begin(checkpoint.partition_id, found, 0, task, OffsetFormat.AMQP)
            assert begun.is_replay
            await mine.commit(
                CheckpointUpdate(
                    partition_id=checkpoint.partition_id,
                    offset="1",
                    sequence_number=COUNT - 1,
                    replaces=begun.checkpoint,
                    writer=task.writer,
                )
            )

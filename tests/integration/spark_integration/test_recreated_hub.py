"""A hub that was deleted and created again: no position of the former one skips its events.

The new hub is always longer than the positions, so no partition ends before them.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import PartitionHandler
from eventproc.emulator import EventHubsEmulator
from eventproc.errors import HubRecreatedError, SourceRejectedError
from eventproc.models import CheckpointUpdate, ConsumerGroup
from spark_integration._columns import SCHEMA
from spark_integration._options import parse_source_options
from spark_integration._sink.options import parse_sink_options
from spark_integration._sink.records import TaskId
from spark_integration._sink.task import _handle
from spark_integration._source.batch_reader import plan
from spark_integration._source.stream_reader import EventProcStreamReader
from tests.integration.spark_integration.conftest import COUNT, options_for, publish

HUB = "orders"
TASK = TaskId(query_id="q", batch_id=0, run_id="r", task=0)
HANDLED = 9


def recreate(emulator: EventHubsEmulator) -> None:
    """Create the hub again, with as many events as before."""
    emulator.recreate_hub(HUB)
    for partition_id in ("0", "1"):
        publish(emulator, partition_id, *(b"%d" % number for number in range(COUNT)))


def reader_of(emulator: EventHubsEmulator, **options: str) -> EventProcStreamReader:
    """Return the reader of one start of a query."""
    given = {"startingPosition": "earliest", "pollInterval": "20ms", **options}
    return EventProcStreamReader(options_for(emulator, **given), SCHEMA)


def latest(reader: EventProcStreamReader, start: Any) -> Any:
    return reader.latestOffset(start)


@pytest.mark.parametrize("is_started_again", [True, False])
def test_a_stream_does_not_continue_in_a_hub_that_was_created_again(own, is_started_again):
    """Neither a query that runs, nor one that is started again."""
    reader = reader_of(own)
    reached = latest(reader, reader.initialOffset())
    recreate(own)
    if is_started_again:
        reader = reader_of(own)

    with pytest.raises(
        SourceRejectedError, match=r"deleted and created again, at .* after this query"
    ):
        latest(reader, reached)


def test_the_last_batch_is_not_read_again_from_a_hub_that_was_created_again(own):
    """A query that is started again reads it without planning it."""
    reader = reader_of(own)
    begin = reader.initialOffset()
    end = latest(reader, begin)
    recreate(own)

    with pytest.raises(SourceRejectedError, match="created again"):
        reader_of(own).partitions(begin, end)


def test_positions_before_the_first_event_are_valid_in_any_hub(own):
    """A query that had read nothing when the hub was created again goes on."""
    own.recreate_hub(HUB)
    reader = reader_of(own)
    begin = reader.initialOffset()
    recreate(own)
    end = latest(reader, begin)

    assert end["next"] == {"0": COUNT, "1": COUNT, "2": 0}
    assert end["created"] > begin["created"]
    assert latest(reader, end) == end


def test_an_offset_that_names_no_time_of_creation_takes_the_present_one(own):
    """A source may not say when its hub was created, as Kafka does not."""
    reader = reader_of(own)
    reached = latest(reader, reader.initialOffset())
    older = {name: value for name, value in reached.items() if name != "created"}

    assert latest(reader_of(own), older) == reached


async def checkpoint_in(path: Path, emulator: EventHubsEmulator) -> ConsumerGroup:
    """Write a checkpoint of partition 0, and return its group."""
    group = ConsumerGroup(fully_qualified_namespace=f"127.0.0.1:{emulator.port}", eventhub_name=HUB)
    async with SqliteCheckpointStore(path) as store:
        update = CheckpointUpdate(
            partition_id="0",
            offset="90",
            sequence_number=HANDLED,
            replaces=None,
            writer="owner/0/1",
        )
        await store.update_checkpoint(group, update)
    return group


def begin_of_stream(options: dict[str, str]) -> object:
    reader = EventProcStreamReader(parse_source_options(options, is_stream=True), SCHEMA)
    return reader.initialOffset()


def begin_of_batch(options: dict[str, str]) -> object:
    return plan(parse_source_options(options, is_stream=False))


@pytest.mark.parametrize(
    ("begin", "positions"),
    [
        (begin_of_stream, "startingPositions"),
        (begin_of_batch, "startingPositions"),
        (begin_of_batch, "endingPositions"),
    ],
)
async def test_checkpoints_of_a_former_hub_are_no_positions(
    own, tmp_path, begin: Callable[[dict[str, str]], object], positions
):
    """Neither of a stream nor of a batch read."""
    await checkpoint_in(tmp_path / "group.db", own)
    options = {
        "connectionString": own.connection_string_for(HUB),
        positions: "checkpoints",
        "checkpointStore": f"sqlite:{tmp_path}/group.db",
    }
    await in_thread(begin, options)
    recreate(own)

    with pytest.raises(HubRecreatedError, match="older than the hub") as found:
        await in_thread(begin, options)
    assert "--recreated-hub" not in str(found.value)


async def in_thread(begin: Callable[[dict[str, str]], object], options: dict[str, str]) -> object:
    """Call a function of the driver, which runs event loops of its own."""
    return await asyncio.to_thread(begin, options)


class Keep(PartitionHandler):
    """Keeps the numbers of its events."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    async def process_event(self, context: Any, event: Any) -> None:
        self.numbers.append(event.sequence_number)


def rows(count: int, enqueued: datetime) -> pa.RecordBatch:
    """Return the first rows of partition 0 as Spark sends them."""
    return pa.RecordBatch.from_pydict(
        {
            "body": [b"1"] * count,
            "partition": ["0"] * count,
            "offset": [str(10 * number) for number in range(count)],
            "sequenceNumber": list(range(count)),
            "enqueuedTime": [enqueued] * count,
        }
    )


@pytest.mark.parametrize("names_hub_only", [False, True])
async def test_rows_are_not_left_out_by_a_checkpoint_of_a_former_hub(own, tmp_path, names_hub_only):
    """The sink asks the hub for its age; if it only has names, the times of the rows tell."""
    group = await checkpoint_in(tmp_path / "group.db", own)
    handler = Keep()
    names = {"connectionString": own.connection_string_for(HUB)}
    if names_hub_only:
        names = {
            "fullyQualifiedNamespace": group.fully_qualified_namespace,
            "eventHubName": HUB,
        }
    options = parse_sink_options(
        {**names, "checkpointStore": f"sqlite:{tmp_path}/group.db"}, handler=lambda: handler
    )
    now = datetime.now(UTC)
    report = await _handle(options, TASK, iter([rows(12, now - timedelta(hours=1))]))
    recreate(own)
    enqueued = now + timedelta(minutes=1) if names_hub_only else now

    assert (report.repeated_count, handler.numbers) == (HANDLED + 1, [10, 11])
    with pytest.raises(HubRecreatedError, match="older than the hub"):
        await _handle(options, TASK, iter([rows(12, enqueued)]))
    assert handler.numbers == [10, 11]


async def test_a_sink_that_cannot_ask_the_hub_goes_by_the_times_of_the_rows(own, tmp_path, caplog):
    """An outage of the hub does not keep it from repeating a batch."""
    await checkpoint_in(tmp_path / "group.db", own)
    handler = Keep()
    options = parse_sink_options(
        {
            "connectionString": own.connection_string_for(HUB),
            "checkpointStore": f"sqlite:{tmp_path}/group.db",
        },
        handler=lambda: handler,
    )
    own.stop()
    await _handle(options, TASK, iter([rows(12, datetime.now(UTC) - timedelta(hours=1))]))

    assert handler.numbers == [10, 11]
    assert [r.getMessage().split()[0] for r in caplog.records if r.levelname == "WARNING"] == [
        "hub_age_unknown"
    ]

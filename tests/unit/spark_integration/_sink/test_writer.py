"""The sink in Spark's interfaces, without Spark: a writer of a query, and ``foreachBatch``."""

import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import PartitionHandler, ReceivedEvent
from eventproc.errors import ConfigurationError
from eventproc.models import Checkpoint
from spark_integration import CheckpointingSink
from spark_integration._columns import SCHEMA, to_record_batches
from spark_integration._sink import batch as batch_module
from spark_integration._sink import writer as stream_writer
from spark_integration._sink.options import parse_sink_options
from spark_integration._sink.rows import NEEDED
from spark_integration._sink.writer import EventProcStreamWriter
from tests.unit.spark_integration._sink.sink_bench import GROUP, events

ACCOUNT = MemoryAccount()
OPTIONS = {
    "checkpointStore": f"{__name__}:make_store",
    "fullyQualifiedNamespace": "ns",
    "eventHubName": "hub",
}
STREAMING = {
    "sql.streaming.queryId": "q",
    "streaming.sql.batchId": "7",
    "spark.jobGroup.id": "r",
}


def make_store() -> MemoryCheckpointStore:
    """Make a store for the recipe."""
    return MemoryCheckpointStore(ACCOUNT)


class Ignores(PartitionHandler):
    """Handles every event, without effect."""

    async def process_event(self, context: Any, event: ReceivedEvent) -> None:
        """Do nothing."""


@pytest.fixture(name="stored", autouse=True)
def _stored(monkeypatch) -> Iterator[dict[str, Checkpoint]]:
    """Yield the checkpoints of a store that is empty at first; run as a task of a query."""
    task = SimpleNamespace(getLocalProperty=STREAMING.get, partitionId=lambda: 0)
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    # It would freeze the objects of all tests.
    for module in (stream_writer, batch_module):
        monkeypatch.setattr(module, "exclude_imports_from_collections", lambda: None)
    stored = ACCOUNT.records(GROUP).checkpoint_by_partition
    stored.clear()
    yield stored
    stored.clear()


def rows(begin: int, end: int) -> Iterator[pa.RecordBatch]:
    """Return rows of partition 0, as Spark sends them."""
    return iter(to_record_batches(SCHEMA, [("0", events(begin, end))]))


def writer() -> Any:
    """Return a writer, as Spark gets it on an executor or on the driver."""
    made = EventProcStreamWriter(parse_sink_options({**OPTIONS, "handler": f"{__name__}:Ignores"}))
    return pickle.loads(pickle.dumps(made))


def test_the_driver_commits_what_the_tasks_report(stored):
    """Spark has no message of a task that it did not run."""
    message = writer().write(rows(0, 3))
    begun = stored["0"].sequence_number
    writer().commit([pickle.loads(pickle.dumps(message)), None], 7)

    assert (begun, stored["0"].sequence_number) == (-1, 2)


def test_a_batch_that_is_aborted_is_not_committed(stored, caplog):
    """It is delivered again; the log says how many tasks had succeeded."""
    message = writer().write(rows(0, 3))
    writer().abort([message, None], 7)

    assert stored["0"].sequence_number == -1
    [line] = [vars(record) for record in caplog.records]
    fields = ("event", "batch_id", "task_count", "done_count")
    assert [line[name] for name in fields] == ["spark_batch_aborted", 7, 2, 1]


class Frame:
    """As much of a ``DataFrame`` as ``foreachBatch`` uses: one task handles all rows."""

    _jdf = None

    def __init__(self, *tasks: Iterator[pa.RecordBatch], schema: Any = SCHEMA) -> None:
        self.tasks, self.schema = tasks, schema

    def mapInArrow(self, function: Any, schema: str) -> Any:  # noqa: N802 - Spark's name
        """Run the tasks, and return their rows."""
        name, _ = schema.split()
        batches = [batch for rows in self.tasks for batch in function(rows)]
        reports = [{name: report} for batch in batches for report in batch[name].to_pylist()]
        return SimpleNamespace(collect=lambda: reports)


def test_for_each_batch_commits_and_counts(stored):
    """The function that is passed to ``foreachBatch`` is called on the driver."""
    sink = CheckpointingSink(Ignores, **OPTIONS)
    assert sink.last_batch is None
    sink(Frame(rows(0, 3)), 7)

    assert stored["0"].sequence_number == 2
    assert sink.last_batch is not None
    assert (sink.last_batch.batch_id, sink.last_batch.handled_count) == (7, 3)


def test_for_each_batch_refuses_a_schema_before_any_task_runs(stored):
    """The error then names the column, and not a failed task."""
    lacking = SCHEMA.__class__([field for field in SCHEMA if field.name != NEEDED[-1]])
    with pytest.raises(ConfigurationError, match=f"no column '{NEEDED[-1]}'"):
        CheckpointingSink(Ignores, **OPTIONS)(Frame(rows(0, 3), schema=lacking), 7)

    assert stored == {}

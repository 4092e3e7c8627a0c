"""One task with several partitions, and the commit of a batch, without Spark."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import CloseReason, FailureAction, FailurePolicy, PartitionHandler
from eventproc.errors import ConfigurationError, DeadLetterError, StoreUnavailableError
from eventproc.models import CheckpointUpdate, DeadLetter
from eventproc.models._statistics import DeliveryCounters
from eventproc.ports import DeadLetterSink
from spark_integration import StoreRecipe
from spark_integration._errors import FencedError, HandlerFailedError, OrderLostError
from spark_integration._sink import task as task_module
from spark_integration._sink.options import GroupRecipe, SinkOptions
from spark_integration._sink.records import PartitionReport, TaskReport
from spark_integration._sink.task import _handle, commit_reports, this_task
from tests.unit.spark_integration._sink.sink_bench import GROUP, TASK, RecordingHandler

ACCOUNT, ANOTHER_ACCOUNT = MemoryAccount(), MemoryAccount()


class LateForOne(MemoryCheckpointStore):
    """Writes the checkpoint of partition "late" after those of all others."""

    async def update_checkpoint(self, group, update):
        """Let other tasks act first."""
        if update.partition_id == "late":
            for _ in range(100):
                await asyncio.sleep(0)
        return await super().update_checkpoint(group, update)


def make_store() -> MemoryCheckpointStore:
    """Make a store for the recipe."""
    return LateForOne(ACCOUNT)


class AwayAtFirst(MemoryCheckpointStore):
    """Answers at the second attempt to open it."""

    openings = 0

    async def open(self):
        """Raise at each first attempt."""
        AwayAtFirst.openings += 1
        if AwayAtFirst.openings % 2:
            raise StoreUnavailableError("no answer")
        await super().open()


def make_store_that_is_away_at_first() -> MemoryCheckpointStore:
    """Make a store for the recipe."""
    return AwayAtFirst(ANOTHER_ACCOUNT)


def options(handler: object = None, **more: Any) -> SinkOptions:
    """Return the options of a sink on that store."""
    return SinkOptions(
        handler=lambda: handler,  # type: ignore[arg-type,return-value]
        group=GroupRecipe(consumer_group="$Default", namespace="ns", eventhub_name="hub"),
        store=StoreRecipe(spec=f"{__name__}:make_store"),
        **more,
    )


def batch(*numbers: int, partition_id: str = "rows") -> pa.RecordBatch:
    """Return rows of one partition as Spark sends them."""
    count = len(numbers)
    return pa.RecordBatch.from_pydict(
        {
            "body": [b"1"] * count,
            "partition": [partition_id] * count,
            "offset": [f"o{number}" for number in numbers],
            "sequenceNumber": list(numbers),
            "enqueuedTime": [datetime(2026, 1, 1, tzinfo=UTC)] * count,
        }
    )


def test_an_outage_while_a_task_or_a_commit_opens_the_store_is_waited_out():
    """As one later in the batch: for ``operationTimeout``."""
    spec = f"{__name__}:make_store_that_is_away_at_first"
    given = replace(options(RecordingHandler()), store=StoreRecipe(spec=spec))
    report = asyncio.run(_handle(given, TASK, iter([batch(0, partition_id="away")])))
    commit_reports(given, 0, [report])

    assert AwayAtFirst.openings == 4


async def test_the_handlers_of_a_failed_task_are_closed():
    """They release what they hold, because Spark tries the task again in the same process."""
    handler = RecordingHandler()
    with pytest.raises(OrderLostError):
        await _handle(options(handler), TASK, iter([batch(0, 1, 2), batch(1)]))

    assert handler.numbers == [0, 1, 2]
    assert handler.closed == [CloseReason.HANDLER_FAILED]


def test_a_fenced_partition_does_not_keep_others_from_being_committed():
    """The batch fails in the end, but the events of the other partitions are not repeated."""
    report = TaskReport(
        task=TASK,
        partitions=tuple(
            PartitionReport(
                partition_id=partition_id,
                replaces=None,
                offset="o4",
                sequence_number=4,
                state=None,
                counters=DeliveryCounters(),
            )
            for partition_id in ("fenced", "late")
        ),
        repeated_count=0,
        is_replay=False,
    )

    async def write_meanwhile() -> None:
        update = CheckpointUpdate(
            partition_id="fenced", offset="o2", sequence_number=2, replaces=None, writer="a/0/1"
        )
        async with make_store() as store:
            await store.update_checkpoint(GROUP, update)

    asyncio.run(write_meanwhile())
    with pytest.raises(FencedError, match="fenced"):
        commit_reports(options(), 7, [report])

    stored = ACCOUNT.records(GROUP).checkpoint_by_partition
    assert {p: found.sequence_number for p, found in stored.items() if p != "rows"} == {
        "fenced": 2,
        "late": 4,
    }


@pytest.fixture(name="stored")
def _stored():
    """Yield the checkpoints in the store, which is empty before and after the test."""
    stored = ACCOUNT.records(GROUP).checkpoint_by_partition
    stored.clear()
    yield stored
    stored.clear()


async def test_a_task_reports_each_partition_with_something_to_commit(stored):
    """Rows that a checkpoint covers are only counted, and a partition of them is left out."""
    covered = CheckpointUpdate(
        partition_id="covered", offset="o9", sequence_number=9, replaces=None, writer="a/0/1"
    )
    async with make_store() as store:
        await store.update_checkpoint(GROUP, covered)
    batches = [
        batch(0, 1, partition_id="new"),
        batch(7, 8, 9, partition_id="covered"),
        batch(2, partition_id="new"),
    ]
    report = await _handle(options(RecordingHandler()), TASK, iter(batches))
    again = await _handle(options(RecordingHandler()), TASK, iter(batches))

    assert report.task == TASK
    assert [(p.partition_id, p.sequence_number) for p in report.partitions] == [("new", 2)]
    assert report.partitions[0].counters.received_count == 3
    assert (report.repeated_count, report.is_replay) == (3, False)
    assert again.is_replay


async def test_a_task_without_rows_opens_nothing():
    """Spark starts one for each partition of the batch, whether it has rows or not."""
    report = await _handle(replace(options(), store=StoreRecipe(spec="no:store")), TASK, iter([]))

    assert report.partitions == ()


class FailsAtItsEnd(RecordingHandler):
    """Raises an error in ``close``."""

    async def close(self, context: Any, reason: CloseReason) -> None:
        """Record the call, and raise."""
        await super().close(context, reason)
        raise OSError("the file is gone")


async def test_a_handler_that_fails_to_close_does_not_keep_others_from_being_closed(stored, caplog):
    """The task fails with its first error; that of ``close`` is logged."""
    made = [FailsAtItsEnd(), RecordingHandler()]
    handlers = iter(made)
    failing = replace(options(), handler=lambda: next(handlers))
    batches = [
        batch(0, partition_id="a"),
        batch(0, 1, partition_id="b"),
        batch(0, partition_id="b"),
    ]
    with pytest.raises(OrderLostError):
        await _handle(failing, TASK, iter(batches))

    assert [handler.closed for handler in made] == [[CloseReason.HANDLER_FAILED]] * 2
    assert [r.__dict__["event"] for r in caplog.records] == ["handler_close_failed"]


class Letters(DeadLetterSink):
    """Records what it is asked for."""

    calls: list[str] = []  # noqa: RUF012 - the recipe makes the instance

    async def open(self) -> None:
        """Record the call."""
        self.calls.append("open")

    async def close(self) -> None:
        """Record the call."""
        self.calls.append("close")

    async def store(self, letter: DeadLetter) -> None:
        """Record the event."""
        self.calls.append(f"store {letter.event.sequence_number}")


class AwayAtFirstToo(Letters):
    """Answers at the second attempt to open it."""

    async def open(self) -> None:
        """Raise at the first attempt."""
        await super().open()
        if self.calls == ["open"]:
            raise DeadLetterError("no answer")


class Refusing(PartitionHandler):
    """Fails on every event."""

    async def process_event(self, context, event):
        """Raise."""
        raise ValueError("odd")


@pytest.mark.parametrize("kind", [Letters, AwayAtFirstToo])
async def test_a_task_opens_its_dead_letter_sink_before_the_first_event_and_closes_it(stored, kind):
    """Once for all partitions of the task; an outage is waited out."""
    Letters.calls.clear()
    with_letters = options(
        Refusing(),
        failure_policy=FailurePolicy(attempts_max=1, action=FailureAction.DEAD_LETTER),
        dead_letters=f"{__name__}:{kind.__name__}",
    )
    batches = [batch(0, partition_id="a"), batch(1, partition_id="b")]
    await _handle(with_letters, TASK, iter(batches))

    begun = ["open"] if kind is Letters else ["open", "open"]
    assert Letters.calls == [*begun, "store 0", "store 1", "close"]


class Starts(RecordingHandler):
    """Fails in ``initialize`` unless it is healthy."""

    def __init__(self, *, is_healthy: bool) -> None:
        super().__init__()
        self.is_healthy, self.begun_at = is_healthy, -2

    async def initialize(self, context: Any) -> None:
        """Record what the context says, or raise."""
        if not self.is_healthy:
            raise OSError("no database")
        assert (context.query_id, context.batch_id) == ("q", 7)
        self.begun_at = context.checkpointed_sequence_number


async def test_a_handler_is_initialized_before_its_first_event(stored):
    """Its context has query, batch and the position of the checkpoint; an error fails the task."""
    handler = Starts(is_healthy=True)
    await _handle(options(handler), TASK, iter([batch(0, 1)]))
    unhealthy = Starts(is_healthy=False)
    with pytest.raises(HandlerFailedError, match=r"initialize\(\): OSError\('no database'\)"):
        await _handle(options(unhealthy), TASK, iter([batch(0, 1)]))

    assert handler.begun_at == -1
    assert unhealthy.numbers == []


async def test_without_a_checkpoint_of_the_group_a_handler_gets_no_position(stored):
    """Unless the batch begins with the partition's first event, there is no position either."""
    handler = Starts(is_healthy=True)
    await _handle(options(handler), TASK, iter([batch(3, 4)]))

    assert handler.begun_at is None


def test_a_batch_with_nothing_to_commit_opens_no_store():
    """Its rows were covered by checkpoints, or it had none."""
    without_store = replace(options(), store=StoreRecipe(spec="no:store"))
    report = TaskReport(task=TASK, partitions=(), repeated_count=3, is_replay=False)

    assert commit_reports(without_store, 7, [report]).repeated_count == 3


def test_a_committed_batch_is_counted(stored, monkeypatch):
    """In the counters of OpenTelemetry, with its group."""
    counted: list[Any] = []
    monkeypatch.setattr(task_module, "count_batch", lambda *facts: counted.append(facts))
    report = asyncio.run(_handle(options(RecordingHandler()), TASK, iter([batch(0, 1)])))
    commit_reports(options(), 7, [replace(report, repeated_count=3)])
    [(group, counters, repeated_count)] = counted

    assert (group, counters.handled_count, repeated_count) == (GROUP, 2, 3)


class SparkTask:
    """As much of Spark's ``TaskContext`` as the sink reads."""

    def __init__(self, **properties: str) -> None:
        self.properties = {name.replace("_", "."): text for name, text in properties.items()}

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 - Spark's name
        return self.properties.get(name)

    def partitionId(self) -> int:  # noqa: N802
        return 3


STREAMING = {"sql_streaming_queryId": "q", "streaming_sql_batchId": "7", "spark_jobGroup_id": "r"}


def test_the_id_of_a_task_is_that_of_its_query_batch_and_run(monkeypatch):
    """It is the writer of the task's checkpoints."""
    monkeypatch.setattr(TaskContext, "get", lambda: SparkTask(**STREAMING))

    assert this_task().writer == "spark/q/7/r/3"


@pytest.mark.parametrize("missing", STREAMING)
def test_a_task_outside_of_a_streaming_query_is_refused(monkeypatch, missing):
    """Without a number of its batch nothing shows whether it was committed."""
    properties = {name: text for name, text in STREAMING.items() if name != missing}
    monkeypatch.setattr(TaskContext, "get", lambda: SparkTask(**properties))
    with pytest.raises(ConfigurationError, match="does not belong to a streaming query"):
        this_task()


def test_a_commit_is_summarized_and_logged(stored, caplog):
    """Also that of a batch without rows, which writes nothing."""
    caplog.set_level("INFO", "eventproc.spark")
    report = asyncio.run(_handle(options(RecordingHandler()), TASK, iter([batch(0, 1)])))
    summary = commit_reports(options(), 7, [report])
    nothing = commit_reports(options(), 8, [])

    assert (summary.query_id, summary.batch_id, summary.handled_count) == ("q", 7, 2)
    assert (nothing.batch_id, nothing.handled_count) == (8, 0)
    assert stored["rows"].sequence_number == 1
    lines = [vars(r) for r in caplog.records if vars(r)["event"] == "spark_batch_committed"]
    assert [(line["consumer_group"], line["batch_id"]) for line in lines] == [
        ("$Default", 7),
        ("$Default", 8),
    ]


def test_a_replayed_batch_is_logged_with_its_partition(stored, caplog):
    """With group, query and batch, so that its effects can be found."""
    for _ in range(2):
        asyncio.run(_handle(options(RecordingHandler()), TASK, iter([batch(0)])))
    [line] = [vars(r) for r in caplog.records if vars(r)["event"] == "spark_batch_replayed"]

    fields = ("consumer_group", "partition_id", "query_id", "batch_id", "sequence_number")
    assert [line[name] for name in fields] == ["$Default", "rows", "q", 7, 0]

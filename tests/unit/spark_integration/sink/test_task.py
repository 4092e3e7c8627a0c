"""One task with several partitions, and the commit of a batch, without Spark."""

import asyncio
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import CloseReason
from eventproc.models import CheckpointUpdate
from eventproc.statistics import DeliveryCounters
from spark_integration import StoreRecipe
from spark_integration.errors import FencedError, OrderLostError
from spark_integration.sink.options import GroupRecipe, SinkOptions
from spark_integration.sink.records import PartitionReport, TaskReport
from spark_integration.sink.task import _handle, commit_reports
from tests.unit.spark_integration.sink.sink_bench import GROUP, TASK, RecordingHandler

ACCOUNT = MemoryAccount()


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


def options(handler: object = None) -> SinkOptions:
    """Return the options of a sink on that store."""
    return SinkOptions(
        handler=lambda: handler,  # type: ignore[arg-type,return-value]
        group=GroupRecipe(consumer_group="$Default", namespace="ns", eventhub_name="hub"),
        store=StoreRecipe(spec=f"{__name__}:make_store"),
    )


def batch(*numbers: int) -> pa.RecordBatch:
    """Return rows of one partition as Spark sends them."""
    count = len(numbers)
    return pa.RecordBatch.from_pydict(
        {
            "body": [b"1"] * count,
            "partition": ["rows"] * count,
            "offset": [f"o{number}" for number in numbers],
            "sequenceNumber": list(numbers),
            "enqueuedTime": [datetime(2026, 1, 1, tzinfo=UTC)] * count,
        }
    )


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

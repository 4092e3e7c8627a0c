"""What one task does with its rows, and what the driver does with the reports of all tasks."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict

import pyarrow as pa
from pyspark import TaskContext

from eventproc.errors import ConfigurationError
from eventproc.logs import get_logger
from eventproc.models import CheckpointUpdate, CloseReason
from eventproc.telemetry import count_batch
from spark_integration.sink_options import SinkOptions
from spark_integration.sink_partition import SinkPartition
from spark_integration.sink_records import (
    BatchSummary,
    TaskId,
    TaskReport,
    add_up,
    commit_update,
    commits,
    summarize,
)
from spark_integration.sink_rows import rows_of
from spark_integration.sink_store import Checkpoints


def this_task() -> TaskId:
    """Return which task of which batch runs here.

    Raises:
        ConfigurationError: none of a streaming query does.
    """
    context = TaskContext.get()
    assert context is not None, "called in a task"
    query_id = context.getLocalProperty("sql.streaming.queryId")
    batch_id = context.getLocalProperty("streaming.sql.batchId")
    run_id = context.getLocalProperty("spark.jobGroup.id")
    if not (query_id and batch_id and run_id):
        raise ConfigurationError(
            "this task belongs to no streaming query, and only those have batches that can be "
            "told from each other: use writeStream"
        )
    return TaskId(
        query_id=query_id, batch_id=int(batch_id), run_id=run_id, task=context.partitionId()
    )


def handle_rows(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> TaskReport:
    """Hand the rows of this task to handlers, one for each partition among them."""
    return asyncio.run(_handle(options, this_task(), batches))


async def _handle(
    options: SinkOptions, task: TaskId, batches: Iterator[pa.RecordBatch]
) -> TaskReport:
    partition_by_id: dict[str, SinkPartition] = {}
    async with AsyncExitStack() as stack:
        make: Callable[[str], SinkPartition] | None = None
        try:
            # In a thread: while rows are waited for, handlers' own tasks go on.
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                make = make or await _workshop(options, task, stack)
                for partition_id, rows in rows_of(batch):
                    if partition_id not in partition_by_id:
                        partition_by_id[partition_id] = make(partition_id)
                    await partition_by_id[partition_id].take(rows)
            reports = [await p.finish(CloseReason.SHUTDOWN) for p in partition_by_id.values()]
        except BaseException:
            await _close_failed(partition_by_id.values())
            raise
    return TaskReport(
        task=task,
        partitions=tuple(report for report in reports if report is not None),
        repeated_count=sum(p.repeated_count for p in partition_by_id.values()),
        is_replay=any(p.is_replay for p in partition_by_id.values()),
    )


async def _workshop(
    options: SinkOptions, task: TaskId, stack: AsyncExitStack
) -> Callable[[str], SinkPartition]:
    """Open what the partitions of a task share; a task without rows opens nothing."""
    group = options.group.make()
    store = await stack.enter_async_context(options.store.make())
    dead_letters = options.make_dead_letters()
    if dead_letters is not None:
        await dead_letters.open()
        stack.push_async_callback(dead_letters.close)
    checkpoints = Checkpoints(store, group, options.patience)

    def make(partition_id: str) -> SinkPartition:
        return SinkPartition(
            partition_id,
            options=options,
            group=group,
            task=task,
            checkpoints=checkpoints,
            dead_letters=dead_letters,
        )

    return make


async def _close_failed(partitions: Iterable[SinkPartition]) -> None:
    """Let handlers end whose task has failed; that error is the one to tell."""
    log = get_logger("eventproc.spark")
    for partition in partitions:
        try:
            await partition.finish(CloseReason.HANDLER_FAILED)
        except Exception as error:  # noqa: BLE001 - the first error is already on its way
            log.warning("handler_close_failed", error=repr(error))


def commit_reports(
    options: SinkOptions, batch_id: int, reports: Sequence[TaskReport]
) -> BatchSummary:
    """Write the checkpoints of a batch, each over the one that its task has marked.

    Raises:
        FencedError: somebody else wrote one meanwhile; those of other partitions are written.
        OrderLostError: rows of one partition came to several tasks; nothing is written.
        StoreUnavailableError: the store does not answer.
    """
    due = commits(reports)
    if due:
        asyncio.run(_commit(options, [commit_update(task, report) for task, report in due]))
    summary = summarize(batch_id, reports)
    count_batch(options.group.make(), add_up(reports), summary.repeated_count)
    log = get_logger("eventproc.spark", consumer_group=options.group.consumer_group)
    log.info("spark_batch_committed", **asdict(summary))
    return summary


async def _commit(options: SinkOptions, updates: Sequence[CheckpointUpdate]) -> None:
    async with options.store.make() as store:
        checkpoints = Checkpoints(store, options.group.make(), options.patience)
        results = await asyncio.gather(*map(checkpoints.commit, updates), return_exceptions=True)
    for result in results:
        if result is not None:
            raise result

"""Handles the rows of one task; on the driver, commits the reports of all tasks."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from functools import partial

import pyarrow as pa
from pyspark import TaskContext

from eventproc._base.logs import get_logger
from eventproc._base.retries import Attempts
from eventproc.errors import ConfigurationError, DeadLetterError
from eventproc.models import CheckpointUpdate, CloseReason
from eventproc.telemetry._batches import count_batch
from spark_integration._option_names import naming_options
from spark_integration._sink.hub_age import HubAge
from spark_integration._sink.options import SinkOptions
from spark_integration._sink.partition import SinkPartition
from spark_integration._sink.records import (
    BatchSummary,
    TaskId,
    TaskReport,
    add_up,
    commit_update,
    commits,
    summarize,
)
from spark_integration._sink.rows import rows_of
from spark_integration._sink.store import BACKOFF, Checkpoints, open_store


def this_task() -> TaskId:
    """Return the id of the task that runs here.

    Raises:
        ConfigurationError: the task does not belong to a streaming query.
    """
    context = TaskContext.get()
    assert context is not None, "called in a task"
    query_id = context.getLocalProperty("sql.streaming.queryId")
    batch_id = context.getLocalProperty("streaming.sql.batchId")
    run_id = context.getLocalProperty("spark.jobGroup.id")
    if not (query_id and batch_id and run_id):
        raise ConfigurationError(
            "this task does not belong to a streaming query, and only streaming queries number "
            "their batches: use writeStream"
        )
    return TaskId(
        query_id=query_id, batch_id=int(batch_id), run_id=run_id, task=context.partitionId()
    )


def handle_rows(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> TaskReport:
    """Call handlers with the rows of this task, one handler for each partition."""
    with naming_options():
        return asyncio.run(_handle(options, this_task(), batches))


async def _handle(
    options: SinkOptions, task: TaskId, batches: Iterator[pa.RecordBatch]
) -> TaskReport:
    partition_by_id: dict[str, SinkPartition] = {}
    async with AsyncExitStack() as stack:
        make: Callable[[str], SinkPartition] | None = None
        try:
            # In a thread, so that handlers' own asyncio tasks run while Spark sends rows.
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                make = make or await _partition_factory(options, task, stack)
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


async def _partition_factory(
    options: SinkOptions, task: TaskId, stack: AsyncExitStack
) -> Callable[[str], SinkPartition]:
    """Open the store and the sink that a task's partitions share; return their factory."""
    group = options.group.make()
    store = await open_store(options, stack)
    dead_letters = options.make_dead_letters()
    if dead_letters is not None:
        await Attempts(options.patience, BACKOFF, DeadLetterError)(dead_letters.open)
        stack.push_async_callback(dead_letters.close)
    return partial(
        SinkPartition,
        options=options,
        group=group,
        task=task,
        checkpoints=Checkpoints(store, group, options.patience),
        hub_age=HubAge(options),
        dead_letters=dead_letters,
    )


async def _close_failed(partitions: Iterable[SinkPartition]) -> None:
    """Close the handlers of a failed task; only log their errors, as the first one is raised."""
    log = get_logger("eventproc.spark")
    for partition in partitions:
        try:
            await partition.finish(CloseReason.HANDLER_FAILED)
        except Exception as error:  # noqa: BLE001 - the first error is being raised
            log.warning("handler_close_failed", error=repr(error))


def commit_reports(
    options: SinkOptions, batch_id: int, reports: Sequence[TaskReport]
) -> BatchSummary:
    """Write the checkpoints of a batch, each over its task's begin record.

    Raises:
        FencedError: another writer has replaced one; those of other partitions are written.
        OrderLostError: several tasks have rows of one partition; nothing is written.
        StoreUnavailableError: the store did not answer within ``operationTimeout``.
    """
    due = commits(reports)
    if due:
        with naming_options():
            asyncio.run(_commit(options, [commit_update(task, report) for task, report in due]))
    summary = summarize(batch_id, reports)
    count_batch(options.group.make(), add_up(reports), summary.repeated_count)
    log = get_logger("eventproc.spark", consumer_group=options.group.consumer_group)
    log.info("spark_batch_committed", **asdict(summary))
    return summary


async def _commit(options: SinkOptions, updates: Sequence[CheckpointUpdate]) -> None:
    async with AsyncExitStack() as stack:
        store = await open_store(options, stack)
        checkpoints = Checkpoints(store, options.group.make(), options.patience)
        results = await asyncio.gather(*map(checkpoints.commit, updates), return_exceptions=True)
    for result in results:
        if result is not None:
            raise result

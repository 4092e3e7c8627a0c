"""Records of the Spark sink: checkpoint writers, task reports, begin records, commits. Pure.

Rule 1: before a task passes the first event of a partition to the handler, it writes a *begin
record*: the checkpoint again, at the same position, with query, batch, run and task as its writer
and an isolation of at least ``batch``. That fences earlier writers, and a batch that finds a begin
record is a replay.
Rule 2: the driver's commit replaces exactly the begin record, or fails.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from eventproc._core.delivery.checkpoints import (
    BEFORE_FIRST_OFFSET,
    BEFORE_FIRST_SEQUENCE_NUMBER,
    completed_above,
)
from eventproc.models import IN_BATCH, NOT_BEGUN, Checkpoint, CheckpointUpdate
from eventproc.models._statistics import DeliveryCounters
from spark_integration._errors import FencedError, OrderLostError

_KIND: Final = "spark"
_FIELD_COUNT: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskId:
    """One task of one batch in one run of a query."""

    query_id: str
    """Durable: Spark stores it in the query's ``checkpointLocation``."""

    batch_id: int
    run_id: str
    """A new value for each start of the query."""

    task: int
    """The task's number in the batch, the same for all of its attempts."""

    @property
    def writer(self) -> str:
        """The writer in the checkpoints of this task."""
        return f"{_KIND}/{self.query_id}/{self.batch_id}/{self.run_id}/{self.task}"

    @property
    def owner_id(self) -> str:
        """The owner id that handlers and dead letters get."""
        return f"{_KIND}/{self.query_id}"


def parse_writer(writer: str | None) -> TaskId | None:
    """Return the task that wrote a checkpoint; ``None`` if the writer is not a task of a sink."""
    parts = (writer or "").split("/")
    if len(parts) != _FIELD_COUNT or parts[0] != _KIND:
        return None
    if not (parts[2].isdecimal() and parts[4].isdecimal()):
        return None
    return TaskId(query_id=parts[1], batch_id=int(parts[2]), run_id=parts[3], task=int(parts[4]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """What a task did with the rows of one partition, and what the driver has to commit."""

    partition_id: str
    replaces: Checkpoint | None
    """The begin record, without its state."""

    offset: str
    sequence_number: int
    """The last handled event."""

    state: bytes | None
    counters: DeliveryCounters


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """The report of one task."""

    task: TaskId
    partitions: tuple[PartitionReport, ...]
    """The partitions with something to commit."""

    repeated_count: int
    """How many rows a checkpoint covered already."""

    is_replay: bool
    """Whether some of its rows may have been handled before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSummary:
    """Counts of events of a committed batch."""

    __module__ = "spark_integration"

    query_id: str | None
    """``None`` if no task reported."""

    batch_id: int
    partition_count: int
    """How many partitions' checkpoints were moved."""

    handled_count: int
    retried_count: int
    dead_lettered_count: int
    skipped_count: int
    repeated_count: int
    """Rows that a checkpoint covered already, so that no handler got them."""

    is_replay: bool


def add_up(reports: Sequence[TaskReport]) -> DeliveryCounters:
    """Add up the counters of all tasks of a batch."""
    counters = DeliveryCounters()
    for report in reports:
        for partition in report.partitions:
            counters.add(partition.counters)
    return counters


def summarize(batch_id: int, reports: Sequence[TaskReport]) -> BatchSummary:
    """Summarize the reports of a batch."""
    counters = add_up(reports)
    return BatchSummary(
        query_id=reports[0].task.query_id if reports else None,
        batch_id=batch_id,
        partition_count=sum(len(report.partitions) for report in reports),
        handled_count=counters.handled_count,
        retried_count=counters.retried_count,
        dead_lettered_count=counters.dead_lettered_count,
        skipped_count=counters.skipped_count,
        repeated_count=sum(report.repeated_count for report in reports),
        is_replay=any(report.is_replay for report in reports),
    )


def refuse_successor(found: Checkpoint | None, me: TaskId) -> None:
    """Check that no later batch and no other task of this query has written the checkpoint.

    Raises:
        FencedError: another driver has begun a later batch.
        OrderLostError: another task of this batch has begun the same partition.
    """
    other = parse_writer(found.writer) if found is not None else None
    if found is None or other is None or other.query_id != me.query_id:
        return
    if other.batch_id > me.batch_id:
        raise FencedError(
            f"the checkpoint of partition {found.partition_id!r} is at {found.sequence_number}, of "
            f"batch {other.batch_id} of this query, and this driver is at batch {me.batch_id}: "
            "another driver of the query is ahead, or its checkpointLocation is an old copy. "
            "Stop this one; a query started from a copy needs a new checkpointLocation"
        )
    is_same_run = (other.batch_id, other.run_id) == (me.batch_id, me.run_id)
    if is_same_run and other.task != me.task and found.isolation != NOT_BEGUN:
        raise two_tasks(found.partition_id, other.task, me.task)


def begin_update(
    partition_id: str, found: Checkpoint | None, first: int, me: TaskId
) -> CheckpointUpdate | None:
    """Return the write of the begin record, for a batch whose first event is *first*.

    ``None`` if there is no position to write: the group has no checkpoint, and *first* is not the
    partition's first event. Then a replay of that batch cannot be recognized.
    """
    if found is not None and found.offset is not None and found.sequence_number is not None:
        return CheckpointUpdate(
            partition_id=partition_id,
            offset=found.offset,
            sequence_number=found.sequence_number,
            replaces=found,
            writer=me.writer,
            completed=found.completed,
            # Not incremented: Spark also retries tasks whose process did not die, and a processor
            # that takes the partition over would give up an event with a high count.
            isolation=max(IN_BATCH, found.isolation),
        )
    if first != BEFORE_FIRST_SEQUENCE_NUMBER + 1:
        return None
    return CheckpointUpdate(
        partition_id=partition_id,
        offset=BEFORE_FIRST_OFFSET,
        sequence_number=BEFORE_FIRST_SEQUENCE_NUMBER,
        replaces=found,
        writer=me.writer,
        isolation=IN_BATCH,
    )


def is_handled(sequence_number: int, found: Checkpoint | None) -> bool:
    """Whether a checkpoint covers an event, by its position or its completed ranges."""
    if found is None or found.sequence_number is None:
        return False
    return sequence_number <= found.sequence_number or any(
        sequence_number in done for done in found.completed
    )


def covered_to(found: Checkpoint) -> int:
    """Return the last event that a checkpoint covers; all events after it are unhandled."""
    position = BEFORE_FIRST_SEQUENCE_NUMBER
    if found.sequence_number is not None:
        position = found.sequence_number
    return max([position, *(done.last for done in found.completed)])


def commits(reports: Iterable[TaskReport]) -> list[tuple[TaskId, PartitionReport]]:
    """Return the partitions that a batch has to commit, each with its task.

    Raises:
        OrderLostError: two tasks have handled rows of one partition.
    """
    task_by_partition: dict[str, int] = {}
    found = []
    for report in reports:
        for partition in report.partitions:
            other = task_by_partition.setdefault(partition.partition_id, report.task.task)
            if other != report.task.task:
                raise two_tasks(partition.partition_id, other, report.task.task)
            found.append((report.task, partition))
    return found


def two_tasks(partition_id: str, one: int, other: int) -> OrderLostError:
    """Return the error for rows of one partition in two tasks."""
    return OrderLostError(
        f"rows of partition {partition_id!r} came to tasks {one} and {other}: the sink needs all "
        "rows of a partition in one task, in order. Remove operations that shuffle between source "
        "and sink (repartition, join, orderBy, groupBy), and the source's maxEventsPerTask"
    )


def commit_update(task: TaskId, report: PartitionReport) -> CheckpointUpdate:
    """Return the write that commits a batch in one partition."""
    begun = report.replaces
    return CheckpointUpdate(
        partition_id=report.partition_id,
        offset=report.offset,
        sequence_number=report.sequence_number,
        replaces=begun,
        writer=task.writer,
        state=report.state,
        completed=completed_above(begun.completed if begun else (), report.sequence_number),
    )


def is_committed(found: Checkpoint | None, update: CheckpointUpdate) -> bool:
    """Whether the store already has this update: its answer was lost, or it was sent twice."""
    return (
        found is not None
        and found.writer == update.writer
        and found.sequence_number == update.sequence_number
    )


def fenced(update: CheckpointUpdate, found: Checkpoint | None) -> FencedError:
    """Return the error for a commit that lost against another writer."""
    if found is None:
        now = "was deleted"
    else:
        writer = found.writer or "a processor of an Azure SDK"
        now = f"was written by {writer!r} in the meantime and is at {found.sequence_number}"
    return FencedError(
        f"the checkpoint of partition {update.partition_id!r} {now}; {update.sequence_number} is "
        "not written over it. Another driver of this query, another query or a processor works "
        "for the same consumer group: stop one of them. After a restart, the query continues from "
        "the checkpoint in the store"
    )

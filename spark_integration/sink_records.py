"""Who writes a checkpoint in a Spark sink, what a task reports, and what may be written. Pure.

Rule 1: before the first event of a partition is handed over, its checkpoint is marked: written
again at the same position in the name of query, batch, run and task, and as handed over. That
shuts out whoever wrote before, and a batch that finds such a mark knows that it is a replay.
Rule 2: the driver's commit replaces exactly the marked checkpoint, or fails.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from eventproc.core.progress import (
    BEFORE_FIRST_OFFSET,
    BEFORE_FIRST_SEQUENCE_NUMBER,
    completed_above,
)
from eventproc.models import Checkpoint, CheckpointUpdate
from eventproc.statistics import Tally
from spark_integration.errors import FencedError, OrderLostError

_KIND: Final = "spark"
_PARTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskId:
    """One task of one batch, as one run of a query's driver has it."""

    query_id: str
    """Durable: it lies in the query's ``checkpointLocation``."""

    batch_id: int
    run_id: str
    """Drawn anew at each start of the query."""

    task: int
    """Which of the batch; all attempts have the same."""

    @property
    def writer(self) -> str:
        """What stands in the checkpoints that it writes."""
        return f"{_KIND}/{self.query_id}/{self.batch_id}/{self.run_id}/{self.task}"

    @property
    def owner_id(self) -> str:
        """What handlers and dead letters are told."""
        return f"{_KIND}/{self.query_id}"


def parse_writer(writer: str | None) -> TaskId | None:
    """Return which task wrote a checkpoint; ``None`` if it was something else."""
    parts = (writer or "").split("/")
    if len(parts) != _PARTS or parts[0] != _KIND:
        return None
    if not (parts[2].isdecimal() and parts[4].isdecimal()):
        return None
    return TaskId(query_id=parts[1], batch_id=int(parts[2]), run_id=parts[3], task=int(parts[4]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """What a task did with the rows of one partition, and what is to be committed."""

    partition_id: str
    replaces: Checkpoint | None
    """The marked checkpoint, without its state."""

    offset: str
    sequence_number: int
    """The last handled event."""

    state: bytes | None
    tally: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """What a task did."""

    task: TaskId
    partitions: tuple[PartitionReport, ...]
    """Those with something to commit."""

    repeated_count: int
    """Rows that a checkpoint covered already."""

    is_replay: bool
    """Whether it found that a part of its rows may have been handled before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSummary:
    """What a committed batch did, in numbers of events."""

    query_id: str | None
    """``None`` where no task had a report."""

    batch_id: int
    partition_count: int
    """Partitions whose checkpoint was moved."""

    handled_count: int
    retried_count: int
    dead_lettered_count: int
    skipped_count: int
    repeated_count: int
    """Rows that checkpoints covered already; no handler saw them."""

    is_replay: bool


def add_up(reports: Sequence[TaskReport]) -> Tally:
    """Add up what handlers did in the tasks of a batch."""
    tally = Tally()
    for report in reports:
        for partition in report.partitions:
            tally.add(partition.tally)
    return tally


def summarize(batch_id: int, reports: Sequence[TaskReport]) -> BatchSummary:
    """Tell what a batch did."""
    tally = add_up(reports)
    return BatchSummary(
        query_id=reports[0].task.query_id if reports else None,
        batch_id=batch_id,
        partition_count=sum(len(report.partitions) for report in reports),
        handled_count=tally.handled_count,
        retried_count=tally.retried_count,
        dead_lettered_count=tally.dead_lettered_count,
        skipped_count=tally.skipped_count,
        repeated_count=sum(report.repeated_count for report in reports),
        is_replay=any(report.is_replay for report in reports),
    )


def refuse_successor(found: Checkpoint | None, me: TaskId) -> None:
    """Refuse to work where the same query has gone on, or has another task at work.

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
            "another driver of the query has gone on, or its checkpointLocation is an old copy. "
            "Stop this one; a query begun from a copy needs a new checkpointLocation"
        )
    is_same_run = (other.batch_id, other.run_id) == (me.batch_id, me.run_id)
    if is_same_run and other.task != me.task and found.delivery_count:
        raise two_tasks(found.partition_id, other.task, me.task)


def mark(
    partition_id: str, found: Checkpoint | None, first: int, me: TaskId
) -> CheckpointUpdate | None:
    """Return the write that begins a partition, before event *first* is handed over.

    ``None`` where there is no position to repeat: a group without a checkpoint that does not begin
    with the partition's first event. Then nothing tells a replay of that batch.
    """
    if found is not None and found.offset is not None and found.sequence_number is not None:
        return CheckpointUpdate(
            partition_id=partition_id,
            offset=found.offset,
            sequence_number=found.sequence_number,
            replaces=found,
            writer=me.writer,
            completed=found.completed,
            # Not counted up: Spark repeats more than what died, and a processor that takes over
            # would give an event up for a count.
            delivery_count=max(1, found.delivery_count),
        )
    if first != BEFORE_FIRST_SEQUENCE_NUMBER + 1:
        return None
    return CheckpointUpdate(
        partition_id=partition_id,
        offset=BEFORE_FIRST_OFFSET,
        sequence_number=BEFORE_FIRST_SEQUENCE_NUMBER,
        replaces=found,
        writer=me.writer,
        delivery_count=1,
    )


def is_handled(sequence_number: int, found: Checkpoint | None) -> bool:
    """Whether a checkpoint covers an event."""
    if found is None or found.sequence_number is None:
        return False
    return sequence_number <= found.sequence_number or any(
        sequence_number in done for done in found.completed
    )


def covered_to(found: Checkpoint) -> int:
    """The last event of which a checkpoint tells that it is handled: none behind it is."""
    position = BEFORE_FIRST_SEQUENCE_NUMBER
    if found.sequence_number is not None:
        position = found.sequence_number
    return max([position, *(done.last for done in found.completed)])


def without_state(checkpoint: Checkpoint | None) -> Checkpoint | None:
    """What has to travel of a checkpoint that is to be replaced, state and all."""
    return None if checkpoint is None else replace(checkpoint, state=None)


def commits(reports: Iterable[TaskReport]) -> list[tuple[TaskId, PartitionReport]]:
    """Return what a batch has to commit.

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
    """Return the error of rows that are spread."""
    return OrderLostError(
        f"rows of partition {partition_id!r} came to tasks {one} and {other}: the sink needs all "
        "rows of a partition in one task, in order. Remove what shuffles between source and sink "
        "(repartition, join, orderBy, groupBy), and the source's maxEventsPerTask"
    )


def commit_update(task: TaskId, report: PartitionReport) -> CheckpointUpdate:
    """Return the write by which a batch is done in one partition."""
    marked = report.replaces
    return CheckpointUpdate(
        partition_id=report.partition_id,
        offset=report.offset,
        sequence_number=report.sequence_number,
        replaces=marked,
        writer=task.writer,
        state=report.state,
        completed=completed_above(marked.completed if marked else (), report.sequence_number),
    )


def is_committed(found: Checkpoint | None, update: CheckpointUpdate) -> bool:
    """Whether an update stands in the store already: its answer was lost, or it came twice."""
    return (
        found is not None
        and found.writer == update.writer
        and found.sequence_number == update.sequence_number
    )


def fenced(update: CheckpointUpdate, found: Checkpoint | None) -> FencedError:
    """Return the error of a commit that came too late."""
    if found is None:
        now = "is gone"
    else:
        now = f"was written by {found.writer or 'a processor of another SDK'!r} meanwhile and is "
        now += f"at {found.sequence_number}"
    return FencedError(
        f"the checkpoint of partition {update.partition_id!r} {now}; {update.sequence_number} is "
        "not written over it. Another driver of this query, another query or a processor works "
        "for the same consumer group: stop one of them. Started again, the query goes on from "
        "what stands there"
    )

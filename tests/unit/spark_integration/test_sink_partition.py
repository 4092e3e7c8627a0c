"""One partition in one task, without Spark: what is handed over, committed, and refused."""

from dataclasses import replace
from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    CloseReason,
)
from eventproc.errors import StoreUnavailableError
from eventproc.models import (
    CheckpointResult,
    CheckpointUpdate,
    ConsumerGroup,
    SequenceRange,
    WriteOutcome,
)
from spark_integration.errors import (
    FencedError,
    OrderLostError,
)
from spark_integration.sink_records import TaskReport, commit_update, commits, parse_writer
from spark_integration.sink_store import Checkpoints
from tests.unit.spark_integration.sink_bench import GROUP, TASK, Bench, Seen, bench, rows


async def test_what_is_handled_is_reported_and_committed():
    """Position and state of the last event, and no mark that anything is under way."""
    desk, seen = await bench(), Seen()
    partition = desk.partition(seen)
    await partition.take(rows(0, 3))
    await partition.take(rows(3, 5))
    marked = await desk.position()
    await desk.commit(partition)

    assert marked == (-1, None, 1)
    assert seen.numbers == [0, 1, 2, 3, 4]
    assert seen.closed == [CloseReason.SHUTDOWN]
    assert seen.replays == {False}
    assert await desk.position() == (4, b"5", 0)


@pytest.mark.parametrize("begin", [0, 3])
async def test_rows_that_a_checkpoint_covers_are_not_handed_over(begin):
    """Those below its position, and those that a processor with key lanes did above it."""
    desk, seen = await bench(), Seen()
    await desk.write(2, completed=(SequenceRange(5, 6),))
    partition = desk.partition(seen)
    await partition.take(rows(begin, 9))
    await desk.commit(partition)

    assert seen.numbers == [3, 4, 7, 8]
    assert partition.repeated_count == 5 - begin
    assert await desk.position() == (8, b"4", 0)


async def test_a_batch_without_anything_new_leaves_no_trace():
    """No mark, no handler; the next batch is no replay."""
    desk = await bench()
    await desk.write(9)
    before = await desk.read()
    partition = desk.partition(Seen())
    await partition.take(rows(0, 10))
    await desk.commit(partition)

    assert await desk.read() == before


@pytest.mark.parametrize("begin", [0, 10])
async def test_what_was_begun_and_not_committed_is_a_replay(begin):
    """In another run of the query, and for another attempt at the task; state begins as it was."""
    desk = await bench()
    if begin:
        await desk.write(begin - 1, state=b"10")
    tasks = (TASK, TASK, replace(TASK, run_id="later"))
    marks = []
    for task in tasks:
        seen = Seen()
        partition = desk.partition(seen, task)
        await partition.take(rows(begin, begin + 3))
        await partition.finish(CloseReason.HANDLER_FAILED)
        marks.append(seen.replays)
    again = Seen()
    partition = desk.partition(again, TASK)
    await partition.take(rows(begin, begin + 3))
    await desk.commit(partition)

    assert [*marks, again.replays] == [{False}, {True}, {True}, {True}]
    assert await desk.position() == (begin + 2, b"%d" % (begin + 3), 0)


async def test_a_sleeper_is_fenced_by_whoever_began_after_it():
    """Whether the other one has committed or not; what it wrote stays."""
    for has_committed in (False, True):
        desk, later = await bench(), replace(TASK, run_id="later")
        sleeper, other = desk.partition(Seen()), desk.partition(Seen(), later)
        await sleeper.take(rows(0, 5))
        await other.take(rows(0, 5))
        if has_committed:
            await desk.commit(other, later)
        before = await desk.read()
        with pytest.raises(FencedError, match="spark/q/7/later/0"):
            await desk.commit(sleeper)

        assert await desk.read() == before


async def test_a_processor_that_writes_meanwhile_fences_a_batch():
    """It works for the same group; one of them has to go."""
    desk = await bench()
    partition = desk.partition(Seen())
    await partition.take(rows(0, 5))
    await desk.write(2)
    with pytest.raises(FencedError, match="owner/0/pump"):
        await desk.commit(partition)

    assert (await desk.position())[0] == 2


async def test_an_old_driver_is_refused_before_it_handles_anything():
    """The checkpoint says that the query is further."""
    desk, seen = await bench(), Seen()
    later = replace(TASK, batch_id=8, run_id="later")
    partition = desk.partition(Seen(), later)
    await partition.take(rows(0, 5))
    await desk.commit(partition, later)
    with pytest.raises(FencedError, match="batch 8"):
        await desk.partition(seen).take(rows(5, 6))

    assert seen.numbers == []


async def test_a_commit_that_comes_twice_is_done():
    """As when its answer was lost."""
    desk = await bench()
    partition = desk.partition(Seen())
    await partition.take(rows(0, 5))
    report = await partition.finish(CloseReason.SHUTDOWN)
    assert report is not None
    for _ in range(2):
        await desk.checkpoints.commit(commit_update(TASK, report))

    assert await desk.position() == (4, b"5", 0)


async def test_rows_out_of_order_are_refused():
    """Within a task, and where two tasks have rows of one partition."""
    desk = await bench()
    partition = desk.partition(Seen())
    await partition.take(rows(5, 7))
    with pytest.raises(OrderLostError, match="row 3 came after 6"):
        await partition.take(rows(3, 4))
    other = replace(TASK, task=1)
    desk = await bench()
    await desk.partition(Seen()).take(rows(0, 3))
    with pytest.raises(OrderLostError, match="tasks 0 and 1"):
        await desk.partition(Seen(), other).take(rows(3, 5))
    desk = await bench()
    reports = []
    for task, begin in ((TASK, 3), (other, 6)):  # A group without a checkpoint, so without marks.
        partition = desk.partition(Seen(), task)
        await partition.take(rows(begin, begin + 3))
        report = await partition.finish(CloseReason.SHUTDOWN)
        assert report is not None
        reports.append(
            TaskReport(task=task, partitions=(report,), repeated_count=0, is_replay=False)
        )
    with pytest.raises(OrderLostError, match="tasks 0 and 1"):
        commits(reports)


@pytest.mark.parametrize(
    "writer", [None, "", "owner/0/x", "spark/a/b/c/d", "spark/q/1/r", "a/b/c/d/e"]
)
def test_other_writers_are_no_tasks(writer):
    """Only what a task wrote is read as one."""
    assert parse_writer(writer) is None
    assert parse_writer(TASK.writer) == TASK


class Doubtful(MemoryCheckpointStore):
    """Answers no write, or carries it out and does not answer, so many times."""

    unanswered = 0
    is_carried_out = True

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        if not self.unanswered:
            return await super().update_checkpoint(group, update)
        self.unanswered -= 1
        if self.is_carried_out:
            await super().update_checkpoint(group, update)
        return CheckpointResult(outcome=WriteOutcome.UNKNOWN)


@pytest.mark.parametrize("is_carried_out", [True, False])
async def test_an_answer_that_is_lost_changes_nothing(is_carried_out):
    """A mark of one's own is no replay, and a commit of one's own no fence."""
    store, seen = Doubtful(), Seen()
    await store.open()
    store.is_carried_out = is_carried_out
    desk = Bench(store)
    partition = desk.partition(seen)
    store.unanswered = 1
    await partition.take(rows(0, 5))
    store.unanswered = 1
    await desk.commit(partition)

    assert (seen.numbers, seen.replays) == ([0, 1, 2, 3, 4], {False})
    assert await desk.position() == (4, b"5", 0)


async def test_a_store_that_stays_away_fails_the_batch():
    """After ``operationTimeout``; the batch comes again."""
    store = Doubtful()
    await store.open()
    store.unanswered = 1_000
    desk = Bench(store)
    desk.checkpoints = Checkpoints(store, GROUP, timedelta(milliseconds=1))
    with pytest.raises(StoreUnavailableError, match="does not answer"):
        await desk.partition(Seen()).take(rows(0, 5))


async def test_two_attempts_at_a_task_share_a_mark():
    """Whichever reports, its commit is good: a speculative attempt fences nobody."""
    desk = await bench()
    slow, fast = desk.partition(Seen()), desk.partition(Seen())
    await slow.take(rows(0, 2))
    await fast.take(rows(0, 5))
    await slow.take(rows(2, 5))
    await desk.commit(slow)

    assert await desk.position() == (4, b"5", 0)


async def test_a_processor_that_goes_further_before_the_mark_is_not_repeated():
    """What it handled between the reading and the marking is left out."""
    desk, seen = await bench(), Seen()
    await desk.write(1)
    partition = desk.partition(seen)
    await partition.take(rows(0, 2))
    await desk.write(3)
    await partition.take(rows(2, 6))
    await desk.commit(partition)

    assert seen.numbers == [4, 5]
    assert (await desk.position())[0] == 5


async def test_a_count_of_deaths_is_neither_raised_nor_forgotten():
    """A processor gives events up for high counts, and Spark's attempts are no deaths."""
    desk = await bench()
    await desk.write(1, delivery_count=3)
    for _ in range(2):
        await desk.partition(Seen()).take(rows(2, 4))

    assert (await desk.position())[2] == 3

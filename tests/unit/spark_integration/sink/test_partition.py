"""One partition in one task, without Spark: what is handed over, committed, and refused."""

from dataclasses import replace
from typing import Any

import pytest

from eventproc import (
    CloseReason,
)
from eventproc.models import SequenceRange
from spark_integration.errors import (
    FencedError,
    HandlerFailedError,
    OrderLostError,
)
from spark_integration.sink.records import TaskReport, commit_update, commits
from tests.unit.spark_integration.sink.sink_bench import (
    TASK,
    RecordingHandler,
    rows,
    sink_harness,
)


async def test_handled_rows_are_reported_and_committed():
    """The commit has position and state of the last event, and a delivery count of 0."""
    harness, seen = await sink_harness(), RecordingHandler()
    partition = harness.partition(seen)
    await partition.take(rows(0, 3))
    await partition.take(rows(3, 5))
    marked = await harness.position()
    await harness.commit(partition)

    assert marked == (-1, None, 1)
    assert seen.numbers == [0, 1, 2, 3, 4]
    assert seen.closed == [CloseReason.SHUTDOWN]
    assert seen.replays == {False}
    assert await harness.position() == (4, b"5", 0)


@pytest.mark.parametrize("begin", [0, 3])
async def test_rows_covered_by_a_checkpoint_are_not_delivered(begin):
    """Rows below its position, and completed ranges of a processor with key lanes above it."""
    harness, seen = await sink_harness(), RecordingHandler()
    await harness.write(2, completed=(SequenceRange(5, 6),))
    partition = harness.partition(seen)
    await partition.take(rows(begin, 9))
    await harness.commit(partition)

    assert seen.numbers == [3, 4, 7, 8]
    assert partition.repeated_count == 5 - begin
    assert await harness.position() == (8, b"4", 0)


async def test_a_batch_without_new_rows_writes_nothing():
    """No begin record is written and no handler made; the next batch is not a replay."""
    harness = await sink_harness()
    await harness.write(9)
    before = await harness.read()
    partition = harness.partition(RecordingHandler())
    await partition.take(rows(0, 10))
    await harness.commit(partition)

    assert await harness.read() == before


@pytest.mark.parametrize("begin", [0, 10])
async def test_a_batch_that_was_begun_but_not_committed_is_a_replay(begin):
    """In another run of the query and in another attempt; the state starts as committed."""
    harness = await sink_harness()
    if begin:
        await harness.write(begin - 1, state=b"10")
    tasks = (TASK, TASK, replace(TASK, run_id="later"))
    marks = []
    for task in tasks:
        seen = RecordingHandler()
        partition = harness.partition(seen, task)
        await partition.take(rows(begin, begin + 3))
        await partition.finish(CloseReason.HANDLER_FAILED)
        marks.append(seen.replays)
    again = RecordingHandler()
    partition = harness.partition(again, TASK)
    await partition.take(rows(begin, begin + 3))
    await harness.commit(partition)

    assert [*marks, again.replays] == [{False}, {True}, {True}, {True}]
    assert await harness.position() == (begin + 2, b"%d" % (begin + 3), 0)


async def test_a_frozen_task_is_fenced_by_a_later_begin_record():
    """Whether or not the other task has committed; its checkpoint is not overwritten."""
    for has_committed in (False, True):
        harness, later = await sink_harness(), replace(TASK, run_id="later")
        sleeper, other = (
            harness.partition(RecordingHandler()),
            harness.partition(RecordingHandler(), later),
        )
        await sleeper.take(rows(0, 5))
        await other.take(rows(0, 5))
        if has_committed:
            await harness.commit(other, later)
        before = await harness.read()
        with pytest.raises(FencedError, match="spark/q/7/later/0"):
            await harness.commit(sleeper)

        assert await harness.read() == before


async def test_a_processor_that_writes_meanwhile_fences_a_batch():
    """The processor works for the same consumer group; the batch's commit raises."""
    harness = await sink_harness()
    partition = harness.partition(RecordingHandler())
    await partition.take(rows(0, 5))
    await harness.write(2)
    with pytest.raises(FencedError, match="owner/0/pump"):
        await harness.commit(partition)

    assert (await harness.position())[0] == 2


async def test_an_old_driver_is_refused_before_it_handles_anything():
    """The checkpoint names a later batch of the query."""
    harness, seen = await sink_harness(), RecordingHandler()
    later = replace(TASK, batch_id=8, run_id="later")
    partition = harness.partition(RecordingHandler(), later)
    await partition.take(rows(0, 5))
    await harness.commit(partition, later)
    with pytest.raises(FencedError, match="batch 8"):
        await harness.partition(seen).take(rows(5, 6))

    assert seen.numbers == []


async def test_a_repeated_commit_succeeds():
    """For example because the answer to the first one was lost."""
    harness = await sink_harness()
    partition = harness.partition(RecordingHandler())
    await partition.take(rows(0, 5))
    report = await partition.finish(CloseReason.SHUTDOWN)
    assert report is not None
    for _ in range(2):
        await harness.checkpoints.commit(commit_update(TASK, report))

    assert await harness.position() == (4, b"5", 0)


async def test_rows_out_of_order_are_refused():
    """Within a task, and if two tasks have rows of one partition."""
    harness = await sink_harness()
    partition = harness.partition(RecordingHandler())
    await partition.take(rows(5, 7))
    with pytest.raises(OrderLostError, match="row 3 came after 6"):
        await partition.take(rows(3, 4))
    other = replace(TASK, task=1)
    harness = await sink_harness()
    await harness.partition(RecordingHandler()).take(rows(0, 3))
    with pytest.raises(OrderLostError, match="tasks 0 and 1"):
        await harness.partition(RecordingHandler(), other).take(rows(3, 5))
    harness = await sink_harness()
    reports = []
    for task, begin in ((TASK, 3), (other, 6)):  # A group without a checkpoint, so without marks.
        partition = harness.partition(RecordingHandler(), task)
        await partition.take(rows(begin, begin + 3))
        report = await partition.finish(CloseReason.SHUTDOWN)
        assert report is not None
        reports.append(
            TaskReport(task=task, partitions=(report,), repeated_count=0, is_replay=False)
        )
    with pytest.raises(OrderLostError, match="tasks 0 and 1"):
        commits(reports)


async def test_two_attempts_at_a_task_share_a_begin_record():
    """Either report can be committed: a speculative attempt does not fence the other one."""
    harness = await sink_harness()
    slow, fast = harness.partition(RecordingHandler()), harness.partition(RecordingHandler())
    await slow.take(rows(0, 2))
    await fast.take(rows(0, 5))
    await slow.take(rows(2, 5))
    await harness.commit(slow)

    assert await harness.position() == (4, b"5", 0)


async def test_the_commit_of_another_attempt_at_the_task_does_not_count():
    """It has the same writer but another position, so later rows are not committed."""
    harness = await sink_harness()
    whole, part = harness.partition(RecordingHandler()), harness.partition(RecordingHandler())
    await whole.take(rows(0, 5))
    await part.take(rows(0, 3))
    await harness.commit(part)

    with pytest.raises(FencedError, match="4 is not written over it"):
        await harness.commit(whole)
    assert await harness.position() == (2, b"3", 0)


async def test_events_that_a_processor_handles_before_the_begin_record_are_not_repeated():
    """The checkpoint moved between the read and the begin record; covered rows are left out."""
    harness, seen = await sink_harness(), RecordingHandler()
    await harness.write(1)
    partition = harness.partition(seen)
    await partition.take(rows(0, 2))
    await harness.write(3)
    await partition.take(rows(2, 6))
    await harness.commit(partition)

    assert seen.numbers == [4, 5]
    assert (await harness.position())[0] == 5


async def test_begin_records_keep_the_delivery_count():
    """A processor gives up events for high counts, and Spark's retries are not crashes."""
    harness = await sink_harness()
    await harness.write(1, delivery_count=3)
    for _ in range(2):
        await harness.partition(RecordingHandler()).take(rows(2, 4))

    assert (await harness.position())[2] == 3


async def test_a_row_that_comes_twice_is_refused():
    """Also if it ends one Arrow batch and begins the next, as after a join."""
    harness, seen = await sink_harness(), RecordingHandler()
    partition = harness.partition(seen)
    await partition.take(rows(0, 3))
    with pytest.raises(OrderLostError, match="row 2 came after 2"):
        await partition.take(rows(2, 5))

    assert seen.numbers == [0, 1, 2]


async def test_completed_ranges_above_the_last_row_stay_in_the_checkpoint():
    """A processor with key lanes has handled them, and a later batch leaves them out."""
    harness, seen = await sink_harness(), RecordingHandler()
    await harness.write(2, completed=(SequenceRange(4, 4), SequenceRange(8, 9)))
    partition = harness.partition(seen)
    await partition.take(rows(3, 6))
    await harness.commit(partition)
    found = await harness.read()

    assert seen.numbers == [3, 5]
    assert found is not None
    assert found.completed == (SequenceRange(8, 9),)


async def test_a_batch_repeated_after_its_commit_may_give_the_partition_to_another_task():
    """The checkpoint covers all rows; only a batch that is not committed has one task for each."""
    harness, seen = await sink_harness(), RecordingHandler()
    partition = harness.partition(RecordingHandler())
    await partition.take(rows(0, 5))
    await harness.commit(partition)
    again = harness.partition(seen, replace(TASK, task=1))
    await again.take(rows(0, 5))

    assert seen.numbers == []
    assert again.repeated_count == 5


class FailsToClose(RecordingHandler):
    """Raises an error in each ``close``."""

    async def close(self, context: Any, reason: CloseReason) -> None:
        await super().close(context, reason)
        raise OSError("the file is gone")


async def test_a_handler_whose_close_failed_is_not_closed_again():
    """The task fails then, and a failed task closes the handlers that are still open."""
    harness, handler = await sink_harness(), FailsToClose()
    partition = harness.partition(handler)
    await partition.take(rows(0, 3))
    with pytest.raises(HandlerFailedError, match="the file is gone"):
        await partition.finish(CloseReason.SHUTDOWN)
    report = await partition.finish(CloseReason.HANDLER_FAILED)

    assert report is None
    assert handler.closed == [CloseReason.SHUTDOWN]

"""One partition in one task, without Spark: what is handed over, committed, and refused."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from eventproc import CloseReason, ReceivedEvent
from eventproc.errors import HubRecreatedError
from eventproc.models import IN_BATCH, NOT_BEGUN, SequenceRange
from spark_integration._errors import HandlerFailedError, OrderLostError
from spark_integration._sink.records import TaskReport, commits
from tests.unit.spark_integration._sink.sink_bench import (
    TASK,
    EventRows,
    RecordingHandler,
    events,
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

    assert marked == (-1, None, IN_BATCH)
    assert seen.numbers == [0, 1, 2, 3, 4]
    assert seen.closed == [CloseReason.SHUTDOWN]
    assert seen.replays == {False}
    assert await harness.position() == (4, b"5", NOT_BEGUN)


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
    assert await harness.position() == (8, b"4", NOT_BEGUN)


@pytest.mark.parametrize(("after_s", "is_same"), [(1, True), (4, True), (60, False)])
async def test_the_clocks_of_hub_and_store_may_differ_by_seconds(after_s, is_same):
    """A repeated row may seem to be enqueued after the checkpoint that covers it."""
    harness, seen = await sink_harness(), RecordingHandler()
    await harness.write(2)
    found = await harness.read()
    assert found is not None
    at = found.last_modified + timedelta(seconds=after_s)
    repeated = EventRows([replace(event, enqueued_time=at) for event in events(0, 5)])
    partition = harness.partition(seen)
    with nullcontext() if is_same else pytest.raises(HubRecreatedError):
        await partition.take(repeated)

    assert seen.numbers == ([3, 4] if is_same else [])


async def test_a_batch_without_new_rows_writes_nothing():
    """No begin record is written and no handler made; the next batch is not a replay."""
    harness = await sink_harness()
    await harness.write(9)
    before = await harness.read()
    partition = harness.partition(RecordingHandler())
    await partition.take(rows(0, 10))
    await harness.commit(partition)

    assert await harness.read() == before


async def test_rows_out_of_order_are_refused():
    """Within a task, and if two tasks have rows of one partition."""
    for numbers, words in (([0, 2, 1, 3], "row 1 came after 2"), ([4, 4], "row 4 came after 4")):
        handler = RecordingHandler()
        mixed = EventRows([events(number, number + 1)[0] for number in numbers])
        with pytest.raises(OrderLostError, match=words):
            await (await sink_harness()).partition(handler).take(mixed)
        assert handler.numbers == []
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


async def test_rows_that_a_checkpoint_covers_are_counted_in_every_batch_of_rows():
    """The summary of a batch tells how many rows were not delivered."""
    harness = await sink_harness()
    await harness.write(5, completed=(SequenceRange(8, 8),))
    partition = harness.partition(RecordingHandler())
    for begin in (0, 3, 6, 9):
        await partition.take(rows(begin, begin + 3))

    assert partition.repeated_count == 7


async def test_a_report_does_not_have_the_state_twice():
    """It travels to the driver: with the state to commit, without the one it replaces."""
    harness = await sink_harness()
    await harness.write(1, state=b"2")
    partition = harness.partition(RecordingHandler())
    await partition.take(rows(2, 4))
    report = await partition.finish(CloseReason.SHUTDOWN)

    assert report is not None
    assert report.replaces is not None
    assert (report.replaces.state, report.state) == (None, b"4")


async def test_a_state_of_another_position_is_logged(caplog):
    """A processor of an Azure SDK moved the checkpoint and left the state as it was."""
    harness = await sink_harness()
    await harness.write(1, state=b"2")
    await harness.partition(RecordingHandler()).take(rows(2, 3))
    assert caplog.records == []
    await harness.write(4)
    await harness.partition(RecordingHandler()).take(rows(5, 6))
    await harness.write(6, state=b"")
    await harness.partition(RecordingHandler()).take(rows(7, 8))

    [line] = [vars(record) for record in caplog.records]
    assert line["event"] == "state_position_mismatched"
    assert (line["sequence_number"], line["state_sequence_number"]) == (4, 1)


class SumsUpAtItsEnd(RecordingHandler):
    """Sets its state in ``close`` alone."""

    async def process_event(self, context: Any, event: ReceivedEvent) -> None:
        self.numbers.append(event.sequence_number)

    async def close(self, context: Any, reason: CloseReason) -> None:
        context.state = b"%d" % sum(self.numbers)


async def test_the_state_that_a_handler_sets_in_close_is_committed():
    """It belongs to the last event of the batch."""
    harness = await sink_harness()
    partition = harness.partition(SumsUpAtItsEnd())
    await partition.take(rows(0, 4))
    await harness.commit(partition)

    assert await harness.position() == (3, b"6", NOT_BEGUN)


class FailsToStart(RecordingHandler):
    """Raises an error in ``initialize``."""

    async def initialize(self, context: Any) -> None:
        raise OSError("no database")


async def test_a_partition_whose_handler_did_not_start_reports_nothing():
    """Without a checkpoint there is no position; the handler is closed nevertheless."""
    harness, handler = await sink_harness(), FailsToStart()
    partition = harness.partition(handler)
    with pytest.raises(HandlerFailedError, match="no database"):
        await partition.take(rows(3, 5))

    assert await partition.finish(CloseReason.HANDLER_FAILED) is None
    assert handler.closed == [CloseReason.HANDLER_FAILED]


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

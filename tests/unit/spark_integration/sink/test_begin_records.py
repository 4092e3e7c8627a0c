"""Begin records, without Spark: which writers they fence, and which batches are replays."""

from dataclasses import replace
from typing import Any

import pytest

from eventproc import CloseReason, ReceivedEvent
from spark_integration.errors import FencedError
from spark_integration.sink.records import commit_update
from tests.unit.spark_integration.sink.sink_bench import (
    TASK,
    RecordingHandler,
    SinkHarness,
    rows,
    sink_harness,
)


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


class SeesWriters(RecordingHandler):
    """Records which writer the stored checkpoint names at each event."""

    def __init__(self, harness: SinkHarness) -> None:
        super().__init__()
        self.harness, self.writers = harness, []  # type: ignore[var-annotated]

    async def process_event(self, context: Any, event: ReceivedEvent) -> None:
        found = await self.harness.read()
        self.writers.append(found and found.writer)
        await super().process_event(context, event)


async def test_no_event_is_delivered_before_the_begin_record():
    """Also if the checkpoint moved meanwhile: only the begin record fences the other writer."""
    harness = await sink_harness()
    seen = SeesWriters(harness)
    await harness.write(1)
    partition = harness.partition(seen)
    await partition.take(rows(0, 2))
    await harness.write(3)
    await partition.take(rows(2, 6))

    assert seen.numbers == [4, 5]
    assert seen.writers == [TASK.writer] * 2


async def test_a_processor_that_writes_between_the_rows_fences_a_batch():
    """The checkpoint is read once, before the first rows: the commit replaces the begin record."""
    harness, seen = await sink_harness(), RecordingHandler()
    partition = harness.partition(seen)
    await partition.take(rows(0, 3))
    await harness.write(1)
    await partition.take(rows(3, 5))
    with pytest.raises(FencedError, match="owner/0/pump"):
        await harness.commit(partition)

    assert seen.numbers == [0, 1, 2, 3, 4]
    assert (await harness.position())[0] == 1


async def test_begin_records_keep_the_delivery_count():
    """A processor gives up events for high counts, and Spark's retries are not crashes."""
    harness = await sink_harness()
    await harness.write(1, delivery_count=3)
    for _ in range(2):
        await harness.partition(RecordingHandler()).take(rows(2, 4))

    assert (await harness.position())[2] == 3

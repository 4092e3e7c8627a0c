"""The sink's reads and writes of checkpoints, while the store or another writer interferes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import CloseReason, ReceivedEvent
from eventproc.errors import (
    ConfigurationError,
    StoreCorruptError,
    StoreError,
    StoreRejectedError,
    StoreUnavailableError,
)
from eventproc.models import (
    ALONE,
    NOT_BEGUN,
    CheckpointResult,
    CheckpointUpdate,
    ConsumerGroup,
    WriteOutcome,
)
from spark_integration._errors import FencedError
from spark_integration._sink.records import commit_update
from spark_integration._sink.store import Checkpoints
from tests.unit.spark_integration._sink.sink_bench import (
    GROUP,
    TASK,
    RecordingHandler,
    SinkHarness,
    rows,
    sink_harness,
)


class LosingWrites(MemoryCheckpointStore):
    """Loses the request or the answer of the first writes."""

    unanswered = 0
    is_carried_out = True
    refusal: StoreError | None = None
    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        if not self.unanswered:
            return await super().update_checkpoint(group, update)
        self.unanswered -= 1
        if self.meanwhile is not None:
            await self.meanwhile()
        if self.is_carried_out and self.refusal is None:
            await super().update_checkpoint(group, update)
        return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=self.refusal)


@pytest.mark.parametrize("is_carried_out", [True, False])
async def test_a_lost_answer_changes_nothing(is_carried_out):
    """A task's own begin record is not a replay, and its own commit does not fence it."""
    store, seen = LosingWrites(), RecordingHandler()
    await store.open()
    store.is_carried_out = is_carried_out
    harness = SinkHarness(store)
    partition = harness.partition(seen)
    store.unanswered = 1
    await partition.take(rows(0, 5))
    store.unanswered = 1
    await harness.commit(partition)

    assert (seen.numbers, seen.replays) == ([0, 1, 2, 3, 4], {False})
    assert await harness.position() == (4, b"5", NOT_BEGUN)


async def test_a_store_that_stays_unreachable_fails_the_batch():
    """After ``operationTimeout``; the batch is delivered again later."""
    store = LosingWrites()
    await store.open()
    store.unanswered = 1_000
    harness = SinkHarness(store)
    harness.checkpoints = Checkpoints(store, GROUP, timedelta(milliseconds=1))
    with pytest.raises(StoreUnavailableError, match="does not answer"):
        await harness.partition(RecordingHandler()).take(rows(0, 5))


@pytest.mark.parametrize("refusal", [StoreRejectedError("no right"), StoreCorruptError("damaged")])
async def test_a_write_that_the_store_refuses_fails_the_batch_at_once(refusal):
    """And not after ``operationTimeout``: the error is the store's own."""
    store = LosingWrites()
    await store.open()
    store.unanswered, store.refusal = 1_000, refusal
    harness = SinkHarness(store)
    harness.checkpoints = Checkpoints(store, GROUP, timedelta(hours=1))
    async with asyncio.timeout(5):
        with pytest.raises(type(refusal), match=str(refusal)):
            await harness.partition(RecordingHandler()).take(rows(0, 5))


async def test_the_reason_for_an_unknown_outcome_is_in_the_error():
    """If the store gives one that may pass."""
    store = LosingWrites()
    await store.open()
    store.unanswered, store.refusal = 1_000, StoreUnavailableError("the disk is busy")
    harness = SinkHarness(store)
    harness.checkpoints = Checkpoints(store, GROUP, timedelta(milliseconds=1))
    with pytest.raises(StoreUnavailableError, match=r"partition '0' .* -1: the disk is busy"):
        await harness.partition(RecordingHandler()).take(rows(0, 5))


async def test_events_that_another_run_began_during_a_lost_write_are_a_replay():
    """The write took no effect, and in between another driver handed the same events over."""
    store, seen = LosingWrites(), RecordingHandler()
    await store.open()
    harness, another_run = SinkHarness(store), replace(TASK, run_id="earlier")

    async def begin_elsewhere() -> None:
        await harness.partition(RecordingHandler(), another_run).take(rows(0, 5))

    store.unanswered, store.is_carried_out, store.meanwhile = 1, False, begin_elsewhere
    await harness.partition(seen).take(rows(0, 5))

    assert seen.replays == {True}


async def test_events_that_another_attempt_begins_before_the_begin_record_are_a_replay():
    """This attempt has read the checkpoint before; its own write of the begin record loses."""
    harness, seen = await sink_harness(), RecordingHandler()
    await harness.write(0)
    late = harness.partition(seen)
    await late.take(rows(0, 1))  # It reads the checkpoint, which covers the row.
    await harness.partition(RecordingHandler()).take(rows(1, 3))
    await late.take(rows(1, 3))

    assert seen.replays == {True}


async def test_a_checkpoint_of_a_processor_that_reads_over_kafka_is_refused():
    """Before anything is handed over: its offset names no position of Event Hubs over AMQP."""
    harness, seen = await sink_harness(), RecordingHandler()
    update = CheckpointUpdate(
        partition_id="0", offset="kafka:4", sequence_number=4, replaces=None, writer="a/0/1"
    )
    await harness.store.update_checkpoint(GROUP, update)
    with pytest.raises(ConfigurationError, match="wrote it"):
        await harness.partition(seen).take(rows(5, 6))

    assert seen.numbers == []


class SilentReads(MemoryCheckpointStore):
    """Does not answer the first reads of a checkpoint."""

    silent = 1

    async def read_checkpoint(self, group, partition_id):
        """Read, or raise."""
        if self.silent:
            self.silent -= 1
            raise StoreUnavailableError("no answer")
        return await super().read_checkpoint(group, partition_id)


async def test_a_read_without_an_answer_is_repeated():
    """The store is known to be out for short times."""
    store, seen = SilentReads(), RecordingHandler()
    await store.open()
    await SinkHarness(store).partition(seen).take(rows(0, 2))

    assert seen.numbers == [0, 1]


async def test_a_commit_whose_begin_record_was_deleted_is_fenced():
    """The message says so; the checkpoint is not created again."""
    account, seen = MemoryAccount(), RecordingHandler()
    store = MemoryCheckpointStore(account)
    await store.open()
    harness = SinkHarness(store)
    partition = harness.partition(seen)
    await partition.take(rows(0, 2))
    account.records(GROUP).checkpoint_by_partition.clear()
    with pytest.raises(FencedError, match="partition '0' was deleted"):
        await harness.commit(partition)

    assert await harness.read() is None


class AdoptedAtOnce(MemoryCheckpointStore):
    """A processor adopts each checkpoint as soon as it is written."""

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        result = await super().update_checkpoint(group, update)
        adoption = replace(update, replaces=result.checkpoint, writer="owner/0/pump")
        await super().update_checkpoint(group, adoption)
        return result


async def test_a_commit_that_was_won_is_not_fenced_by_what_follows():
    """The batch is committed: its events are not delivered again."""
    store = AdoptedAtOnce()
    await store.open()
    update = CheckpointUpdate(
        partition_id="0", offset="o4", sequence_number=4, replaces=None, writer=TASK.writer
    )
    await Checkpoints(store, GROUP, timedelta(seconds=5)).commit(update)
    found = await store.read_checkpoint(GROUP, "0")

    assert found is not None
    assert (found.sequence_number, found.writer) == (4, "owner/0/pump")


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
    assert await harness.position() == (begin + 2, b"%d" % (begin + 3), NOT_BEGUN)


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


async def test_an_old_driver_that_is_overtaken_during_a_lost_write_is_refused():
    """Its begin record would replace that of the later batch."""
    store, seen = LosingWrites(), RecordingHandler()
    await store.open()
    harness, later = SinkHarness(store), replace(TASK, batch_id=8, run_id="later")

    async def begin_later() -> None:
        await harness.partition(RecordingHandler(), later).take(rows(0, 5))

    store.unanswered, store.is_carried_out, store.meanwhile = 1, False, begin_later
    with pytest.raises(FencedError, match="batch 8"):
        await harness.partition(seen).take(rows(0, 5))

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

    assert await harness.position() == (4, b"5", NOT_BEGUN)


async def test_two_attempts_at_a_task_share_a_begin_record():
    """Either report can be committed: a speculative attempt does not fence the other one."""
    harness = await sink_harness()
    slow, fast = harness.partition(RecordingHandler()), harness.partition(RecordingHandler())
    await slow.take(rows(0, 2))
    await fast.take(rows(0, 5))
    await slow.take(rows(2, 5))
    await harness.commit(slow)

    assert await harness.position() == (4, b"5", NOT_BEGUN)


async def test_the_commit_of_another_attempt_at_the_task_does_not_count():
    """It has the same writer but another position, so later rows are not committed."""
    harness = await sink_harness()
    whole, part = harness.partition(RecordingHandler()), harness.partition(RecordingHandler())
    await whole.take(rows(0, 5))
    await part.take(rows(0, 3))
    await harness.commit(part)

    with pytest.raises(FencedError, match="4 is not written over it"):
        await harness.commit(whole)
    assert await harness.position() == (2, b"3", NOT_BEGUN)


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


async def test_begin_records_keep_the_isolation():
    """A processor gives up events that were alone, and Spark's retries are not crashes."""
    harness = await sink_harness()
    await harness.write(1, isolation=ALONE)
    for _ in range(2):
        await harness.partition(RecordingHandler()).take(rows(2, 4))

    assert (await harness.position())[2] == ALONE

"""One partition in one task, without Spark: what is handed over, reported, and refused."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    BatchError,
    BlockingPartitionHandler,
    CloseReason,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.deadletter import DeadLetter
from eventproc.errors import StoreUnavailableError
from eventproc.models import (
    STATE_BYTES_MAX,
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ConsumerGroup,
    SequenceRange,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore, DeadLetterSink
from spark_integration import StoreRecipe
from spark_integration.errors import (
    FencedError,
    HandlerFailedError,
    OrderLostError,
    RefusedInSparkError,
)
from spark_integration.sink_options import GroupRecipe, SinkOptions
from spark_integration.sink_partition import Rows, SinkPartition
from spark_integration.sink_records import TaskId, TaskReport, commit_update, commits, parse_writer
from spark_integration.sink_store import Checkpoints

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
TASK = TaskId(query_id="q", batch_id=7, run_id="r", task=0)
PATIENCE = timedelta(seconds=5)


def events(begin: int, end: int) -> list[ReceivedEvent]:
    """Return events with these sequence numbers."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        ReceivedEvent(body=b"1", sequence_number=n, offset=f"o{n}", enqueued_time=at)
        for n in range(begin, end)
    ]


class EventRows(Rows):
    """Rows that were events all along."""

    def __init__(self, events: Sequence[ReceivedEvent]) -> None:
        self._events = self.columns = events
        self.numbers = [event.sequence_number for event in events]

    @property
    def last_offset(self) -> str:
        return self._events[-1].offset

    def only(self, is_wanted: Sequence[bool]) -> Rows:
        return EventRows(
            [event for event, is_it in zip(self._events, is_wanted, strict=True) if is_it]
        )

    def events(self) -> Sequence[ReceivedEvent]:
        return self._events


def rows(begin: int, end: int) -> Rows:
    """Return rows with these sequence numbers."""
    return EventRows(events(begin, end))


class Seen(PartitionHandler):
    """Takes down what it gets, and counts it in its state."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.replays: set[bool] = set()
        self.closed: list[CloseReason] = []

    async def process_event(self, context: Any, event: ReceivedEvent) -> None:
        self.numbers.append(event.sequence_number)
        self.replays.add(context.is_replay)
        context.state = b"%d" % (int(context.state or b"0") + 1)

    async def close(self, context: Any, reason: CloseReason) -> None:
        self.closed.append(reason)


class Bench:
    """A store, and tasks that work on it."""

    def __init__(self, store: CheckpointStore) -> None:
        self.store = store
        self.checkpoints = Checkpoints(store, GROUP, PATIENCE)

    def partition(
        self,
        handler: Any,
        task: TaskId = TASK,
        letters: DeadLetterSink | None = None,
        **options: Any,
    ) -> SinkPartition:
        return SinkPartition(
            "0",
            options=SinkOptions(
                handler=lambda: handler,
                group=GroupRecipe(consumer_group="$Default", namespace="ns", eventhub_name="hub"),
                store=StoreRecipe(spec="sqlite:unused"),
                **options,
            ),
            group=GROUP,
            task=task,
            checkpoints=self.checkpoints,
            dead_letters=letters,
        )

    async def commit(self, partition: SinkPartition, task: TaskId = TASK) -> None:
        report = await partition.finish(CloseReason.SHUTDOWN)
        if report is not None:
            await self.checkpoints.commit(commit_update(task, report))

    async def write(self, number: int, **facts: Any) -> None:
        """Let a processor checkpoint."""
        update = CheckpointUpdate(
            partition_id="0",
            offset=f"o{number}",
            sequence_number=number,
            replaces=await self.read(),
            writer="owner/0/pump",
            **facts,
        )
        await self.store.update_checkpoint(GROUP, update)

    async def read(self) -> Checkpoint | None:
        return await self.store.read_checkpoint(GROUP, "0")

    async def position(self) -> tuple[int | None, bytes | None, int]:
        found = await self.read()
        assert found is not None
        return found.sequence_number, found.state, found.delivery_count


async def bench() -> Bench:
    """Return a bench with an empty store."""
    store = MemoryCheckpointStore()
    await store.open()
    return Bench(store)


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


async def test_rows_that_a_checkpoint_covers_are_not_handed_over():
    """Those below its position, and those that a processor with key lanes did above it."""
    desk, seen = await bench(), Seen()
    await desk.write(2, completed=(SequenceRange(5, 6),))
    partition = desk.partition(seen)
    await partition.take(rows(0, 9))
    await desk.commit(partition)

    assert seen.numbers == [3, 4, 7, 8]
    assert partition.repeated_count == 5
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


class Fails(Seen):
    """Fails on one event, the first so many times."""

    def __init__(self, number: int, times: int) -> None:
        super().__init__()
        self.number, self.times = number, times

    async def process_events(self, context: Any, batch: Sequence[ReceivedEvent]) -> None:
        for index, event in enumerate(batch):
            await self.process_event(context, event)
            if event.sequence_number == self.number and self.times:
                self.times -= 1
                raise BatchError([(event, ValueError("odd"))], untried=batch[index + 1 :])


async def test_a_failure_is_tried_again_in_place():
    """What was done stays done, and the state has each event once."""
    desk, seen = await bench(), Fails(2, 2)
    partition = desk.partition(seen)
    await partition.take(rows(0, 5))
    await desk.commit(partition)

    assert seen.numbers == [0, 1, 2, 2, 2, 3, 4]
    assert (await desk.position())[0] == 4


async def test_a_handler_that_fails_for_good_fails_the_task():
    """With its own error as the cause; or the event is passed over, where that was asked for."""
    desk = await bench()
    policy = FailurePolicy(attempts_max=2)
    with pytest.raises(HandlerFailedError, match="odd") as caught:
        await desk.partition(Fails(2, 9), failure_policy=policy).take(rows(0, 5))
    assert isinstance(caught.value.__cause__, ValueError)
    partition = desk.partition(
        seen := Fails(2, 9), failure_policy=replace(policy, then=FailureAction.SKIP)
    )
    await partition.take(rows(0, 5))
    await desk.commit(partition)

    assert seen.numbers == [0, 1, 2, 2, 3, 4]
    assert (await desk.position())[0] == 4


class Blocking(BlockingPartitionHandler):
    """Asks its context for everything."""

    def process_event(self, context: Any, event: ReceivedEvent) -> None:
        for ask in (lambda: context.is_owned, context.checkpoint):
            with pytest.raises(RefusedInSparkError, match="cannot be had"):
                ask()
        assert (context.partition_id, context.owner_id) == ("0", "spark/q")
        assert (context.lag, context.is_cancelled, context.is_replay) == (None, False, False)
        context.state = b"seen"


async def test_a_blocking_handler_is_told_what_can_be_known():
    """And refused what would be a guess."""
    desk = await bench()
    partition = desk.partition(Blocking())
    await partition.take(rows(0, 2))
    await desk.commit(partition)

    assert await desk.position() == (1, b"seen", 0)


class Checkpointing(PartitionHandler):
    """Checkpoints by itself."""

    async def process_events(self, context: Any, batch: Sequence[ReceivedEvent]) -> None:
        await context.checkpoint(batch[-1])


async def test_a_handler_that_checkpoints_has_to_be_allowed_to():
    """Deferred, if somebody says that this is good enough."""
    desk, policy = await bench(), FailurePolicy(attempts_max=1)
    with pytest.raises(HandlerFailedError, match="deferCheckpoints"):
        await desk.partition(Checkpointing(), failure_policy=policy).take(rows(0, 2))
    partition = desk.partition(Checkpointing(), defers_checkpoints=True)
    await partition.take(rows(0, 2))
    before = await desk.position()
    await desk.commit(partition)

    assert before[0] == -1
    assert (await desk.position())[0] == 1


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


async def test_a_state_that_grows_too_large_is_refused():
    """Where it is set, as in a processor."""

    class Hoards(PartitionHandler):
        async def process_event(self, context: Any, event: ReceivedEvent) -> None:
            context.state = bytes(STATE_BYTES_MAX + 1)

    desk = await bench()
    policy = FailurePolicy(attempts_max=1)
    with pytest.raises(HandlerFailedError, match="the limit is"):
        await desk.partition(Hoards(), failure_policy=policy).take(rows(0, 1))


async def test_an_event_that_is_given_up_goes_to_the_dead_letters():
    """It is stored before the position passes over it."""
    desk = await bench()
    letters: list[int] = []

    class Letters(DeadLetterSink):
        async def open(self) -> None: ...

        async def close(self) -> None: ...

        async def store(self, letter: DeadLetter) -> None:
            letters.append(letter.event.sequence_number)

    policy = FailurePolicy(attempts_max=1, then=FailureAction.DEAD_LETTER)
    partition = desk.partition(
        Fails(2, 9), failure_policy=policy, dead_letters="x:y", letters=Letters()
    )
    await partition.take(rows(0, 5))
    report = await partition.finish(CloseReason.SHUTDOWN)

    assert letters == [2]
    assert report is not None
    assert (report.sequence_number, report.tally.dead_lettered_count) == (4, 1)


class CountsAtOnce(PartitionHandler):
    """Counts a whole call, and fails behind that; or says first how far it is."""

    def __init__(self, *, tells: bool) -> None:
        self.tells, self.is_healthy = tells, False
        self.calls: list[list[int]] = []

    async def process_events(self, context: Any, batch: Sequence[ReceivedEvent]) -> None:
        self.calls.append([event.sequence_number for event in batch])
        context.state = b"%d" % (int(context.state or b"0") + len(batch))
        if self.is_healthy:
            return
        self.is_healthy = True
        if self.tells:
            await context.checkpoint(batch[-1])
        raise ValueError("odd")


async def test_what_a_failed_call_did_to_the_state_is_taken_back():
    """Its events come again and would be counted twice."""
    desk, handler = await bench(), CountsAtOnce(tells=False)
    partition = desk.partition(handler)
    await partition.take(rows(0, 3))
    await desk.commit(partition)

    assert handler.calls == [[0, 1, 2], [0], [1], [2]]
    assert await desk.position() == (2, b"3", 0)


async def test_what_a_deferred_checkpoint_covers_does_not_come_again():
    """Within the task: what it says of the events is true, only not stored yet."""
    desk, handler = await bench(), CountsAtOnce(tells=True)
    partition = desk.partition(handler, defers_checkpoints=True)
    await partition.take(rows(0, 3))
    await desk.commit(partition)

    assert handler.calls == [[0, 1, 2]]
    assert await desk.position() == (2, b"3", 0)


class Columns(Seen):
    """Takes whole batches."""

    async def process_columns(self, context: Any, columns: Any) -> None:
        self.numbers += [event.sequence_number for event in columns]
        context.state = b"%d" % len(columns)
        if self.numbers[-1] == 8:
            raise ValueError("odd")


async def test_a_handler_may_take_columns():
    """Those that no checkpoint covers; position and state are committed like any other's."""
    desk, seen = await bench(), Columns()
    await desk.write(2)
    partition = desk.partition(seen)
    await partition.take(rows(0, 5))
    await partition.take(rows(5, 8))
    report = await partition.finish(CloseReason.SHUTDOWN)
    assert report is not None
    await desk.checkpoints.commit(commit_update(TASK, report))

    assert seen.numbers == [3, 4, 5, 6, 7]
    assert await desk.position() == (7, b"3", 0)
    assert report.tally.handled_count == 5


async def test_a_handler_that_fails_on_columns_fails_the_task():
    """Spark tries the task again."""
    desk = await bench()
    with pytest.raises(HandlerFailedError, match="odd"):
        await desk.partition(Columns()).take(rows(7, 9))

"""A handler in a Spark task, without Spark: failures, state, and what the context refuses."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

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
from eventproc.models import (
    STATE_BYTES_MAX,
)
from eventproc.ports import DeadLetterSink
from spark_integration.errors import (
    HandlerFailedError,
    RefusedInSparkError,
)
from spark_integration.sink_records import commit_update
from tests.unit.spark_integration.sink_bench import (
    TASK,
    Seen,
    bench,
    rows,
)


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

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
    RowError,
)
from eventproc.models import NOT_BEGUN, STATE_BYTES_MAX, DeadLetter
from eventproc.ports import DeadLetterSink
from spark_integration._errors import HandlerFailedError, RefusedInSparkError
from spark_integration._sink.records import commit_update
from tests.unit.spark_integration._sink.sink_bench import (
    TASK,
    RecordingHandler,
    rows,
    sink_harness,
)


class FailingHandler(RecordingHandler):
    """Fails on one event, the first *times* times."""

    def __init__(self, number: int, times: int) -> None:
        super().__init__()
        self.number, self.times = number, times

    async def process_events(self, context: Any, batch: Sequence[ReceivedEvent]) -> None:
        for index, event in enumerate(batch):
            await self.process_event(context, event)
            if event.sequence_number == self.number and self.times:
                self.times -= 1
                raise BatchError([(event, ValueError("odd"))], untried=batch[index + 1 :])


async def test_a_failed_call_is_retried_in_place():
    """Handled events are not repeated, and the state includes each event once."""
    harness, seen = await sink_harness(), FailingHandler(2, 2)
    partition = harness.partition(seen)
    await partition.take(rows(0, 5))
    await harness.commit(partition)

    assert seen.numbers == [0, 1, 2, 2, 2, 3, 4]
    assert (await harness.position())[0] == 4


async def test_a_handler_that_fails_for_good_fails_the_task():
    """Its error is the cause; with onFailure=skip the event is skipped instead."""
    harness = await sink_harness()
    policy = FailurePolicy(attempts_max=2)
    with pytest.raises(HandlerFailedError, match="odd") as caught:
        await harness.partition(FailingHandler(2, 9), failure_policy=policy).take(rows(0, 5))
    assert isinstance(caught.value.__cause__, ValueError)
    partition = harness.partition(
        seen := FailingHandler(2, 9), failure_policy=replace(policy, action=FailureAction.SKIP)
    )
    await partition.take(rows(0, 5))
    await harness.commit(partition)

    assert seen.numbers == [0, 1, 2, 2, 3, 4]
    assert (await harness.position())[0] == 4


class Blocking(BlockingPartitionHandler):
    """Uses every part of its context."""

    def process_event(self, context: Any, event: ReceivedEvent) -> None:
        for ask in (lambda: context.is_owned, context.checkpoint):
            with pytest.raises(RefusedInSparkError, match="is not available in a Spark sink"):
                ask()
        assert (context.partition_id, context.owner_id) == ("0", "spark/q")
        context.resume()
        assert (context.lag, context.is_cancelled, context.is_replay) == (None, False, False)
        context.state = b"seen"


async def test_a_blocking_handler_has_the_same_context():
    """What a task does not know, such as is_owned, raises."""
    harness = await sink_harness()
    partition = harness.partition(Blocking())
    await partition.take(rows(0, 2))
    await harness.commit(partition)

    assert await harness.position() == (1, b"seen", NOT_BEGUN)


class Checkpointing(PartitionHandler):
    """Calls context.checkpoint()."""

    async def process_events(self, context: Any, batch: Sequence[ReceivedEvent]) -> None:
        await context.checkpoint(batch[-1])


async def test_checkpoint_is_refused_without_defer_checkpoints():
    """With the option, it returns and the commit of the batch stores the position."""
    harness, policy = await sink_harness(), FailurePolicy(attempts_max=1)
    with pytest.raises(HandlerFailedError, match="deferCheckpoints"):
        await harness.partition(Checkpointing(), failure_policy=policy).take(rows(0, 2))
    partition = harness.partition(Checkpointing(), defers_checkpoints=True)
    await partition.take(rows(0, 2))
    before = await harness.position()
    await harness.commit(partition)

    assert before[0] == -1
    assert (await harness.position())[0] == 1


async def test_a_state_that_grows_too_large_is_refused():
    """Setting it raises, as in a processor."""

    class Hoards(PartitionHandler):
        async def process_event(self, context: Any, event: ReceivedEvent) -> None:
            context.state = bytes(STATE_BYTES_MAX + 1)

    harness = await sink_harness()
    policy = FailurePolicy(attempts_max=1)
    with pytest.raises(HandlerFailedError, match="the limit is"):
        await harness.partition(Hoards(), failure_policy=policy).take(rows(0, 1))


async def test_a_state_that_is_not_bytes_is_refused_when_it_is_set():
    """As in a processor, and not by the store when the batch is committed."""

    class Careless(PartitionHandler):
        async def process_event(self, context: Any, event: ReceivedEvent) -> None:
            context.state = "text"

    harness = await sink_harness()
    policy = FailurePolicy(attempts_max=1)
    with pytest.raises(HandlerFailedError) as failed:
        await harness.partition(Careless(), failure_policy=policy).take(rows(0, 1))

    assert isinstance(failed.value.__cause__, TypeError)
    assert "is a str: give bytes" in str(failed.value.__cause__)


async def test_an_event_that_is_given_up_is_stored_as_a_dead_letter():
    """Before the position passes it."""
    harness = await sink_harness()
    letters: list[int] = []

    class Letters(DeadLetterSink):
        async def open(self) -> None: ...

        async def close(self) -> None: ...

        async def store(self, letter: DeadLetter) -> None:
            letters.append(letter.event.sequence_number)

    policy = FailurePolicy(attempts_max=1, action=FailureAction.DEAD_LETTER)
    partition = harness.partition(
        FailingHandler(2, 9), failure_policy=policy, dead_letters="x:y", letters=Letters()
    )
    await partition.take(rows(0, 5))
    report = await partition.finish(CloseReason.SHUTDOWN)

    assert letters == [2]
    assert report is not None
    assert (report.sequence_number, report.counters.dead_lettered_count) == (4, 1)


class CountsAtOnce(PartitionHandler):
    """Counts a call's events in its state and then fails; may call done() before."""

    def __init__(self, *, reports_done: bool) -> None:
        self.reports_done, self.is_healthy = reports_done, False
        self.calls: list[list[int]] = []

    async def process_events(self, context: Any, batch: Sequence[ReceivedEvent]) -> None:
        self.calls.append([event.sequence_number for event in batch])
        context.state = b"%d" % (int(context.state or b"0") + len(batch))
        if self.is_healthy:
            return
        self.is_healthy = True
        if self.reports_done:
            await context.checkpoint(batch[-1])
        raise ValueError("odd")


async def test_a_failed_call_does_not_change_the_state():
    """Its events are delivered again and would be counted twice."""
    harness, handler = await sink_harness(), CountsAtOnce(reports_done=False)
    partition = harness.partition(handler)
    await partition.take(rows(0, 3))
    await harness.commit(partition)

    assert handler.calls == [[0, 1, 2], [0], [1], [2]]
    assert await harness.position() == (2, b"3", NOT_BEGUN)


async def test_events_covered_by_a_deferred_checkpoint_are_not_delivered_again():
    """Within the task, although the checkpoint is not stored yet."""
    harness, handler = await sink_harness(), CountsAtOnce(reports_done=True)
    partition = harness.partition(handler, defers_checkpoints=True)
    await partition.take(rows(0, 3))
    await harness.commit(partition)

    assert handler.calls == [[0, 1, 2]]
    assert await harness.position() == (2, b"3", NOT_BEGUN)


class Columns(RecordingHandler):
    """Takes whole batches."""

    async def process_columns(self, context: Any, columns: Any) -> None:
        numbers = columns.column("sequenceNumber").to_pylist()
        context.state = b"%d" % len(numbers)
        if 8 in numbers:
            raise ValueError("odd")
        self.numbers += numbers


async def test_a_handler_may_take_columns():
    """It gets the rows that no checkpoint covers; position and state are committed as usual."""
    harness, seen = await sink_harness(), Columns()
    await harness.write(2)
    partition = harness.partition(seen)
    await partition.take(rows(0, 5))
    await partition.take(rows(5, 8))
    report = await partition.finish(CloseReason.SHUTDOWN)
    assert report is not None
    await harness.checkpoints.commit(commit_update(TASK, report))

    assert seen.numbers == [3, 4, 5, 6, 7]
    assert await harness.position() == (7, b"3", NOT_BEGUN)
    assert report.counters.handled_count == 5


class ClosesColumns(Columns):
    """Sets its state in ``close``."""

    async def close(self, context: Any, reason: CloseReason) -> None:
        context.state = b"closed"


async def test_a_handler_of_columns_may_set_its_state_in_close():
    """It belongs to the last row, and is committed with it."""
    harness = await sink_harness()
    partition = harness.partition(ClosesColumns())
    await partition.take(rows(0, 3))
    await harness.commit(partition)

    assert await harness.position() == (2, b"closed", NOT_BEGUN)


async def test_a_handler_that_fails_on_columns_fails_the_task():
    """When a row has failed as often as maxAttempts allows; all rows before it are handled."""
    harness, seen = await sink_harness(), Columns()
    with pytest.raises(HandlerFailedError, match="odd"):
        await harness.partition(seen).take(rows(0, 20))

    assert seen.numbers == list(range(8))


async def test_a_row_that_a_handler_of_columns_cannot_handle_is_skipped():
    """It is found by halving the batch; every other row is handled once, in order."""
    harness, seen = await sink_harness(), Columns()
    policy = FailurePolicy(attempts_max=1, action=FailureAction.SKIP)
    partition = harness.partition(seen, failure_policy=policy)
    await partition.take(rows(0, 20))
    await harness.commit(partition)

    assert seen.numbers == [*range(8), *range(9, 20)]
    assert (await harness.position())[0] == 19


class NamesRows(Columns):
    """Names the row that it cannot handle."""

    async def process_columns(self, context: Any, columns: Any) -> None:
        numbers = columns.column("sequenceNumber").to_pylist()
        self.numbers += [number for number in numbers if number != 8]
        if 8 in numbers:
            raise RowError(numbers.index(8))


async def test_only_rows_that_an_error_names_are_delivered_again():
    """As with a processor."""
    harness, seen = await sink_harness(), NamesRows()
    policy = FailurePolicy(attempts_max=2, action=FailureAction.SKIP)
    partition = harness.partition(seen, failure_policy=policy)
    await partition.take(rows(5, 12))
    await harness.commit(partition)

    assert seen.numbers == [5, 6, 7, 9, 10, 11]


class NamesRowsOnce(Columns):
    """Cannot handle some rows at first, which it names."""

    failing = frozenset({6, 8})

    async def process_columns(self, context: Any, columns: Any) -> None:
        numbers = columns.column("sequenceNumber").to_pylist()
        bad = [row for row, number in enumerate(numbers) if number in self.failing]
        self.numbers += [number for number in numbers if number not in self.failing]
        self.failing = frozenset()
        if bad:
            raise RowError(bad[0], *bad[1:])


@pytest.mark.parametrize("last", [9, 400])
async def test_named_rows_are_handled_when_they_can_be(last):
    """They come again as columns, however many other rows the call had."""
    harness, seen = await sink_harness(), NamesRowsOnce()
    policy = FailurePolicy(attempts_max=2, action=FailureAction.SKIP)
    partition = harness.partition(seen, failure_policy=policy)
    await partition.take(rows(5, last))
    await harness.commit(partition)

    assert sorted(seen.numbers) == [*range(5, last)]


class ColumnsInAThread(BlockingPartitionHandler):
    """Handles columns with an ordinary function, and events too, which Spark does not use."""

    def __init__(self) -> None:
        self.row_counts: list[int] = []

    def process_columns(self, context: Any, columns: Any) -> None:
        self.row_counts.append(columns.num_rows)

    def process_event(self, context: Any, event: ReceivedEvent) -> None:
        raise AssertionError("process_columns is called")


@pytest.mark.parametrize(("count_max", "calls"), [(None, [7]), (3, [3, 3, 1])])
async def test_columns_are_handed_to_blocking_handlers_too(count_max, calls):
    """A whole Arrow batch at once, or at most maxEventsPerCall rows."""
    harness, seen = await sink_harness(), ColumnsInAThread()
    await harness.partition(seen, events_per_call_max=count_max).take(rows(0, 7))

    assert seen.row_counts == calls


class Pausing(RecordingHandler):
    """Resumes, which does nothing, and then pauses."""

    async def process_event(self, context: Any, event: ReceivedEvent) -> None:
        context.resume()
        context.pause()


class PausingInAThread(BlockingPartitionHandler):
    """Resumes, which does nothing, and then pauses."""

    def process_event(self, context: Any, event: ReceivedEvent) -> None:
        context.resume()
        context.pause()


@pytest.mark.parametrize("handler", [Pausing, PausingInAThread])
async def test_pausing_is_refused(handler):
    """A batch is handled as a whole; the message names the option that bounds it."""
    harness, policy = await sink_harness(), FailurePolicy(attempts_max=1)
    with pytest.raises(HandlerFailedError, match="maxEventsPerTrigger"):
        await harness.partition(handler(), failure_policy=policy).take(rows(0, 2))


async def test_checkpoint_without_an_event_marks_what_is_done_so_far():
    """With deferCheckpoints; the call's own events are done when it returns."""

    class MarksAll(RecordingHandler):
        async def process_event(self, context: Any, event: ReceivedEvent) -> None:
            await context.checkpoint()
            await super().process_event(context, event)

    harness, seen = await sink_harness(), MarksAll()
    partition = harness.partition(seen, defers_checkpoints=True)
    await partition.take(rows(0, 3))
    await harness.commit(partition)

    assert seen.numbers == [0, 1, 2]
    assert await harness.position() == (2, b"3", NOT_BEGUN)

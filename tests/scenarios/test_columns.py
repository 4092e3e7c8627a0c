"""Handlers of columns: the same guarantees as for events, and a bad row is found by halving."""

import asyncio
import json
from datetime import timedelta

import pyarrow as pa
import pytest

from eventproc import (
    BatchError,
    BlockingPartitionHandler,
    CheckpointPolicy,
    CloseReason,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
    RowError,
)
from eventproc.columns import to_columns
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import ReceivedEvent
from eventproc.testing import HandlerTestHarness
from tests.scenarios.column_setup import TWO_THEN_LETTER, BatchSetup, Rows, served
from tests.scenarios.group_setup import Setup, seconds, source_of


def test_rows_are_handled_without_an_object_for_each():
    """With position, state and counters as for events."""
    setup, handler, source, statistics = served(count=25_000)

    assert not handler.errors
    assert [len(call) for call in handler.calls] == [10_000, 10_000, 5_000]
    assert setup.numbers() == list(range(25_000))
    assert setup.checkpointed() == 24_999
    assert setup.state() == b"25000"
    assert statistics.counters.handled_count == 25_000
    assert len(source.made) < 200


async def test_columns_come_from_sources_that_know_only_events():
    """They are converted for the call."""
    setup = Setup()
    handler = Rows(setup)
    setup.publish(500)
    async with setup.processor(lambda: handler):
        await seconds(30)
    calls = handler.calls

    assert [len(call) for call in calls] == [300, 200]
    assert setup.numbers() == list(range(500))


def test_one_bad_row_among_ten_thousand_is_found_by_halving():
    """It alone becomes a dead letter. Each other row is handled once; state counts those."""
    sink = MemoryDeadLetterSink()

    class OneBad(Rows):
        bad = frozenset({4_321})

    setup, handler, source, statistics = served(
        OneBad, count=10_000, sink=sink, failure_policy=TWO_THEN_LETTER
    )
    (letter,) = sink.letters

    assert setup.numbers() == [n for n in range(10_000) if n != 4_321]
    assert type(letter.event) is ReceivedEvent
    assert (letter.event.sequence_number, letter.attempt_count) == (4_321, 2)
    assert (letter.error_type, letter.error_message) == ("ValueError", "cannot read")
    assert len(handler.calls) < 32
    assert handler.calls.count([4_321]) == 2
    assert len(handler.errors) == sum(4_321 in call for call in handler.calls)
    assert (setup.checkpointed(), setup.state()) == (9_999, b"9999")
    assert (statistics.counters.handled_count, statistics.counters.dead_lettered_count) == (
        9_999,
        1,
    )
    assert len(source.made) < 5_000


def test_a_row_error_names_rows_that_are_tried_alone():
    """All others of the call are handled, so they do not come again."""
    sink = MemoryDeadLetterSink()

    class Named(Rows):
        bad = frozenset({17, 4_321})
        names_rows = True

    setup, handler, source, _ = served(
        Named, count=10_000, sink=sink, failure_policy=TWO_THEN_LETTER
    )

    assert handler.calls == [list(range(10_000)), [17], [4_321]]
    assert sorted(setup.numbers()) == [n for n in range(10_000) if n not in Named.bad]
    assert [letter.event.sequence_number for letter in sink.letters] == [17, 4_321]
    assert [letter.error_message for letter in sink.letters] == ["cannot read"] * 2
    assert (setup.checkpointed(), setup.state()) == (9_999, b"9998")
    assert len(source.made) < 500


def test_no_position_is_stored_between_a_failed_row_and_those_handled_above_it():
    """The state covers the rows above, so after a crash they would be counted twice."""

    class Named(Rows):
        bad = frozenset({3})
        names_rows = True

    policy = CheckpointPolicy(interval=timedelta(seconds=1))
    setup, handler, _, _ = served(Named, count=10, checkpoint_policy=policy)

    assert handler.calls[:3] == [list(range(10)), [3], [3]]
    assert setup.checkpointed() is None
    assert setup.state() is None


def test_a_row_that_the_batch_does_not_have_names_none():
    """A mistake in the handler: it is reported, and the call is halved."""

    class Wrong(Rows):
        async def process_columns(self, context, columns):
            if columns.num_rows > 1:
                raise RowError(columns.num_rows)
            await super().process_columns(context, columns)

    setup, handler, _, _ = served(Wrong, count=4)

    assert setup.numbers() == [0, 1, 2, 3]
    assert str(handler.errors[0]) == "RowError names row 4, of a batch of 4 rows"
    assert isinstance(handler.errors[0].__cause__, RowError)


def test_transient_errors_give_up_no_row():
    """However often a row fails with one."""
    failures = [ConnectionError()] * 20

    class Unreachable(Rows):
        async def process_columns(self, context, columns):
            if failures:
                raise failures.pop()
            await super().process_columns(context, columns)

    policy = FailurePolicy(attempts_max=1, action=FailureAction.SKIP, transient=(ConnectionError,))
    setup, _, _, statistics = served(Unreachable, count=1_000, failure_policy=policy)

    assert setup.numbers() == list(range(1_000))
    assert statistics.counters.skipped_count == 0
    assert setup.state() == b"1000"


def test_a_batch_error_names_events_of_a_handler_that_converts_them_itself():
    """As with any ``process_events``; ``done`` of an event is kept by the batch that fails."""

    class Converting(Rows):
        takes_columns = True
        failed = False

        async def process_events(self, context, events):
            for begin in range(0, len(events), 100):
                part = events[begin : begin + 100]
                numbers = to_columns(part, ("sequenceNumber",), "0").column(0).to_pylist()
                self.calls.append(numbers)
                if not self.failed and begin == 300:
                    self.failed = True
                    raise BatchError([(part[50], ValueError())], untried=events[400:])
                self.note([n for n in numbers if n != 350 or len(part) == 1], context)
                context.done(part[-1]) if begin < 300 else None

    setup, handler, _, _ = served(Converting, count=1_000)

    assert [call for call in handler.calls if 50 in call] == [list(range(100))]
    assert handler.calls.count([350]) == 1
    assert sorted({*setup.numbers(), *range(300, 400)}) == list(range(1_000))
    assert setup.checkpointed() == 999


@pytest.mark.parametrize("names_rows", [False, True])
def test_blocking_handlers_take_columns_too(names_rows):
    """The columns are built in the handler's thread."""
    calls: list[list[int]] = []

    class InThread(BlockingPartitionHandler):
        columns = ("sequenceNumber",)

        def process_columns(self, context, columns):
            calls.append(columns.column(0).to_pylist())
            context.state = str(int(context.state or b"0") + columns.num_rows).encode()
            if 5 in calls[-1]:
                if names_rows:
                    raise RowError(calls[-1].index(5), error=ValueError("five"))
                raise ValueError("five")

    policy = FailurePolicy(attempts_max=1, action=FailureAction.DEAD_LETTER)
    config = EventProcessorConfig(failure_policy=policy)
    with HandlerTestHarness(InThread, config=config) as harness:
        harness.publish(*map(str, range(8)))
        harness.settle()
        harness.assert_dead_lettered("5")
        assert sorted(harness.handled_bodies) == [b"0", b"1", b"2", b"3", b"4", b"6", b"7"]

    expected = [list(range(8))]
    expected += [] if names_rows else [[0, 1, 2, 3], [4, 5, 6, 7], [4, 5], [4], [5], [6, 7]]
    assert calls[: len(expected)] == expected


def test_a_handler_of_events_gets_events_although_it_has_columns_for_spark():
    """``process_columns`` is called by Spark's sink."""

    class Both(Rows):
        async def process_event(self, context, event):
            self.note([event.sequence_number], context)

    setup, handler, source, _ = served(Both, count=10)

    assert setup.numbers() == list(range(10))
    assert handler.calls == []
    assert not source.receivers[0].takes_columns


async def test_a_partition_is_drained_before_it_is_handed_over():
    """The next owner begins after the last row of the call under way."""
    setup = BatchSetup()
    setup.publish(1_000)

    class Slow(Rows):
        async def process_columns(self, context, columns):
            await seconds(2)
            await super().process_columns(context, columns)

    handlers: list[Slow] = []

    def make():
        handlers.append(Slow(setup))
        return handlers[-1]

    for owner_id in ("a", "b"):
        async with setup.processor(make, owner_id, batch_size_max=300):
            await seconds(3)

    assert setup.numbers() == list(range(len(setup.numbers())))
    assert handlers[1].calls[0][0] == handlers[0].calls[-1][-1] + 1
    assert handlers[0].closed == [CloseReason.SHUTDOWN]
    assert setup.checkpointed() == setup.numbers()[-1]


async def test_no_more_is_received_while_a_call_is_under_way():
    """A slow handler bounds what is in memory: one batch of ``batch_size_max``."""
    setup = BatchSetup()
    setup.publish(10_000)
    going_on = asyncio.Event()

    class Waiting(Rows):
        async def process_columns(self, context, columns):
            await going_on.wait()
            await super().process_columns(context, columns)

    processor = setup.processor(lambda: Waiting(setup), batch_size_max=500)
    async with processor:
        await seconds(20)
        waiting = processor.statistics().counters.received_count
        going_on.set()
        await seconds(20)

    assert waiting == 500
    assert setup.numbers() == list(range(10_000))


async def test_each_link_that_is_opened_knows_that_columns_are_wanted():
    """After a broken connection, too; no event is lost or repeated."""
    setup = BatchSetup()
    setup.publish(10)
    processor = setup.processor(lambda: Rows(setup))
    source = source_of(processor)
    async with processor:
        await seconds(5)
        setup.hub.break_links()
        setup.publish(10)
        await seconds(30)

    assert [receiver.takes_columns for receiver in source.receivers] == [True, True]
    assert setup.numbers() == list(range(20))


def test_columns_have_the_types_of_the_connector():
    """All of them, in the order that the handler names."""

    class All(Rows):
        columns = ("systemProperties", "partition", "enqueuedTime", "sequenceNumber")
        schemas: list[pa.Schema] = []  # noqa: RUF012 - read by the test

        async def process_columns(self, context, columns):
            self.schemas.append(columns.schema)

    served(All, count=1)
    (schema,) = All.schemas

    assert schema.names == list(All.columns)
    assert schema.field("enqueuedTime").type == pa.timestamp("us", tz="UTC")


def test_json_bodies_are_read_as_one_document():
    """What a handler does with a column of bodies."""
    bodies = [json.dumps({"amount": n}).encode() for n in range(3)]

    class Sums(PartitionHandler):
        async def process_columns(self, context, columns):
            rows = b"[" + b",".join(columns.column("body").to_pylist()) + b"]"
            total = int(context.state or b"0") + sum(row["amount"] for row in json.loads(rows))
            context.state = str(total).encode()

    with HandlerTestHarness(Sums) as harness:
        harness.publish(*bodies)
        harness.settle()
        harness.advance(timedelta(minutes=1))
        assert harness.state() == b"3"


def test_a_row_error_names_rows():
    """By their index, from 0, each once; with the reason if there is one."""
    error = RowError(7, 2, 7, error=ValueError("bad"))

    assert error.rows == (2, 7)
    assert str(error) == "2 of the rows failed, first row 2: ValueError('bad')"
    assert str(error.shown) == "bad"
    assert RowError(1).shown.args == ("1 of the rows failed, first row 1",)
    with pytest.raises(ValueError, match="no row failed: return instead"):
        RowError()
    with pytest.raises(ValueError, match="there is no row -1: count from 0"):
        RowError(3, -1)

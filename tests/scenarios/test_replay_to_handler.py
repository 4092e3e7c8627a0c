"""Dead letters are replayed straight through a handler."""

import threading
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from eventproc import BlockingPartitionHandler, CloseReason, ConfigurationError, PartitionHandler
from eventproc.dead_letters import HandlerTarget, matching, replay
from tests.scenarios.dead_letters import (
    GROUP,
    QUICK,
    REFUSED,
    REPLAYED,
    left,
    letter,
    replayed,
    stored,
)

# --- through a handler ---------------------------------------------------------------------------


class Kept(PartitionHandler):
    """Notes its calls, and fails for events whose number is in ``failing``."""

    failing: frozenset[int] = frozenset()
    calls: list[tuple[object, ...]]

    async def initialize(self, context):
        """Note it."""
        Kept.calls.append(("initialize", context.partition_id, context.owner_id))

    async def process_event(self, context, event):
        """Note the event."""
        Kept.calls.append((event.sequence_number, event.replayed_from, dict(event.properties)))
        await context.checkpoint(event)
        if event.sequence_number in Kept.failing:
            raise ValueError("no")

    async def close(self, context, reason):
        """Note it."""
        Kept.calls.append(("close", reason))


async def test_a_handler_gets_the_events_as_they_were():
    """The calls are those of a processor: initialize, retries with waits, close."""
    Kept.calls, Kept.failing = [], frozenset({2})
    reader = await stored(letter(1), letter(2), letter(3))
    target = HandlerTarget(Kept, attempts_max=2, backoff=QUICK)
    outcomes = await replayed(reader, target)

    assert (outcomes, await left(reader)) == ([REPLAYED, REFUSED, REPLAYED], [2])
    properties = {"kind": "order"}
    assert Kept.calls == [
        ("initialize", "1", "dead-letters"),
        (1, "memory/hub/$default/1/1", properties),
        (2, "memory/hub/$default/1/2", properties),
        (2, "memory/hub/$default/1/2", properties),
        (3, "memory/hub/$default/1/3", properties),
        ("close", CloseReason.SHUTDOWN),
    ]


async def test_the_position_of_the_context_passes_a_letter_that_stays():
    """Otherwise what is kept for the events above it would grow with each letter."""
    positions = []

    class Noting(PartitionHandler):
        async def process_event(self, context, event):
            positions.append(context.sequence_number)
            if event.sequence_number == 1:
                raise ValueError("no")

    reader = await stored(letter(1), letter(2), letter(3))
    await replayed(reader, HandlerTarget(Noting, attempts_max=1))

    assert positions == [None, 1, 2]


async def test_each_partition_of_each_group_has_a_handler():
    """As in a processor: a handler may keep what belongs to its partition.

    Numbers of different hubs and groups may rise as if they were of one partition.
    """
    events_by_handler: dict[PartitionHandler, list[tuple[str, str, str, int]]] = {}

    class Noting(PartitionHandler):
        async def process_event(self, context, event):
            group = context.consumer_group
            place = (group.eventhub_name, group.name, context.partition_id)
            events_by_handler.setdefault(self, []).append((*place, event.sequence_number))

    audit, returns = replace(GROUP, name="audit"), replace(GROUP, eventhub_name="returns")
    reader = await stored(
        letter(1),
        replace(letter(2), partition_id="0"),
        replace(letter(3), group=audit),
        replace(letter(4), group=returns),
        letter(5),
    )
    stored_by_number = {
        s.letter.event.sequence_number: s for s in await matching(reader) if s.letter
    }
    mixed = [stored_by_number[number] for number in range(1, 6)]
    await replayed(reader, HandlerTarget(Noting), mixed)

    assert [*events_by_handler.values()] == [
        [("hub", "$Default", "1", 1), ("hub", "$Default", "1", 5)],
        [("hub", "$Default", "0", 2)],
        [("hub", "audit", "1", 3)],
        [("returns", "$Default", "1", 4)],
    ]


async def test_the_reason_of_a_refusal_is_the_handlers_error():
    """With its class, as in the letter."""
    Kept.calls, Kept.failing = [], frozenset({1})
    reader = await stored(letter(1))
    async with HandlerTarget(Kept, attempts_max=1) as target:
        (result,) = [r async for r in replay(reader, target, await matching(reader))]

    assert result.reason == "the handler failed: ValueError: no (attempts: 1)"


@pytest.mark.real_time
async def test_ordinary_functions_are_called_in_a_thread():
    """As in a processor."""
    numbers = []

    class Blocking(BlockingPartitionHandler):
        def process_event(self, context, event):
            assert context.is_replay
            numbers.append(event.sequence_number)

    reader = await stored(letter(1), letter(2))
    outcomes = await replayed(reader, HandlerTarget(Blocking))

    assert (outcomes, numbers) == ([REPLAYED, REPLAYED], [1, 2])


async def test_a_handler_of_columns_gets_a_row_for_each_letter():
    """One call for each, because a letter is removed after its own call."""
    rows: list[list[bytes]] = []

    class Columns(PartitionHandler):
        columns = ("body",)

        async def process_columns(self, context, columns: pa.RecordBatch):
            rows.append(columns["body"].to_pylist())

    reader = await stored(letter(1), letter(2))
    await replayed(reader, HandlerTarget(Columns))

    assert rows == [[b"1"], [b"2"]]


async def test_a_handler_that_sets_a_state_cannot_be_replayed_through():
    """The state belongs to the group's position, which stays as it is."""

    class Counting(PartitionHandler):
        async def process_event(self, context, event):
            context.state = b"1"

    reader = await stored(letter(1))
    async with HandlerTarget(Counting, attempts_max=1) as target:
        (result,) = [r async for r in replay(reader, target, await matching(reader))]

    assert result.outcome is REFUSED
    assert "replay this letter to the hub" in result.reason
    assert await left(reader) == [1]


class Booking(PartitionHandler):
    """Stores the group's position with its own writes, which a replay leaves as it is."""

    uses_transactions = True

    async def process_event(self, context, event):
        """Use a transaction."""
        async with context.transaction():
            pass


def made() -> Booking:
    """Make a handler, whose class is not known before."""
    return Booking()


@pytest.mark.parametrize("make", [Booking, made])
def test_a_handler_with_transactions_is_refused_before_a_letter_is_read(make):
    """An event that is tried again would be refused again."""
    with pytest.raises(ConfigurationError, match=r"Booking uses .*: replay .* to the hub"):
        HandlerTarget(make)


async def test_a_transaction_of_a_handler_that_does_not_announce_it_is_refused():
    """Its letter stays, and the reason says what to do with it."""

    class Unannounced(Booking):
        uses_transactions = False

    reader = await stored(letter(1))
    async with HandlerTarget(Unannounced, attempts_max=1) as target:
        (result,) = [r async for r in replay(reader, target, await matching(reader))]

    assert "TransactionsRefusedError" in result.reason
    assert "replay this letter to the hub" in result.reason
    assert await left(reader) == [1]


async def test_a_handler_that_cannot_be_initialized_refuses_the_letters():
    """They stay, and the reason is that of the handler."""

    class Broken(PartitionHandler):
        async def initialize(self, context):
            raise OSError("no database")

        async def process_event(self, context, event):
            raise AssertionError

    reader = await stored(letter(1), letter(2))
    outcomes = await replayed(reader, HandlerTarget(Broken))

    assert (outcomes, await left(reader)) == ([REFUSED, REFUSED], [1, 2])


@pytest.mark.real_time
async def test_a_handler_that_cannot_be_initialized_leaves_no_thread():
    """It is closed, as by a processor; a replay of many letters makes one for each of them."""
    closed: list[CloseReason] = []
    threads: list[threading.Thread] = []

    class Broken(BlockingPartitionHandler):
        def initialize(self, context):
            threads.append(threading.current_thread())
            raise OSError("no database")

        def process_event(self, context, event):
            raise AssertionError

        def close(self, context, reason):
            closed.append(reason)

    reader = await stored(letter(1), letter(2))
    outcomes = await replayed(reader, HandlerTarget(Broken))
    for thread in threads:
        thread.join(5)

    assert (outcomes, closed) == ([REFUSED, REFUSED], [CloseReason.SHUTDOWN] * 2)
    assert [thread.is_alive() for thread in threads] == [False, False]


async def test_letters_out_of_order_are_not_taken_for_handled():
    """A reader of one's own may give them in another order; none is removed without a call."""
    Kept.calls, Kept.failing = [], frozenset()
    reader = await stored(letter(1), letter(2))
    first, second = await matching(reader)
    outcomes = await replayed(reader, HandlerTarget(Kept), [second, first])

    assert (outcomes, await left(reader)) == ([REPLAYED, REPLAYED], [])
    assert [call[0] for call in Kept.calls if isinstance(call[0], int)] == [2, 1]


async def test_a_target_that_stays_open_takes_earlier_letters_in_a_later_replay():
    """By a new handler: to the first one they would be events out of order."""
    Kept.calls, Kept.failing = [], frozenset({1})
    reader = await stored(letter(1), letter(2))
    async with HandlerTarget(Kept, attempts_max=1) as target:
        first = [r.outcome async for r in replay(reader, target, await matching(reader))]
        Kept.failing = frozenset()
        second = [r.outcome async for r in replay(reader, target, await matching(reader))]

    assert (first, second, await left(reader)) == ([REFUSED, REPLAYED], [REPLAYED], [])
    names = [call[0] for call in Kept.calls]
    assert names == ["initialize", 1, 2, "close", "initialize", 1, "close"]


async def test_a_handler_gets_letters_with_one_number_of_a_hub_and_of_its_former_life():
    """They are different events."""
    Kept.calls, Kept.failing = [], frozenset()
    former = letter(1)
    time = former.event.enqueued_time + timedelta(days=1)
    reader = await stored(former, replace(former, event=replace(former.event, enqueued_time=time)))
    outcomes = await replayed(reader, HandlerTarget(Kept))

    assert (outcomes, await left(reader)) == ([REPLAYED, REPLAYED], [])
    assert [call[0] for call in Kept.calls if isinstance(call[0], int)] == [1, 1]


def test_a_handler_that_cannot_work_is_refused_before_a_letter_is_read():
    """As by a processor."""
    with pytest.raises(ConfigurationError, match="process_event"):
        HandlerTarget(PartitionHandler)

"""The contract of ``EventSource``, checked for every source.

Another source needs a bench of four methods and a line in ``conftest.py``.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from eventproc.columns import COLUMNS, to_columns
from eventproc.errors import (
    ConfigurationError,
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.models import EventPosition, ReceivedEvent
from tests.integration.sources.bench import (
    BRIEFLY,
    EARLIEST,
    GROUP,
    OTHER_GROUP,
    SOON,
    Bench,
    bodies,
    end_of,
    numbered,
    opened,
    read,
    refused,
    take,
)

# --- the clauses ---------------------------------------------------------------------------------

Clause = Callable[[Bench], Awaitable[None]]
CLAUSES: list[Clause] = []


def clause(function: Clause) -> Clause:
    """Add a function to the contract."""
    CLAUSES.append(function)
    return function


@clause
async def events_come_in_order_and_once(bench: Bench) -> None:
    async with opened(bench) as receiver:
        await bench.publish("0", *numbered(250))
        events = await take(receiver, 250)
        later = await receiver.receive(events_max=10, wait_max=BRIEFLY)

    numbers = [event.sequence_number for event in events]
    assert bodies(events) == numbered(250)
    assert numbers == list(range(numbers[0], numbers[0] + 250))
    assert len({event.offset for event in events}) == 250
    assert list(later) == []


@clause
async def the_same_events_come_if_columns_are_wanted(bench: Bench) -> None:
    """One by one, and as columns."""
    position = end_of(bench, "0")
    async with opened(bench, position=position) as receiver:
        await bench.publish("0", b"", b"x" * 1000, *numbered(250))
        events = await take(receiver, 252)
    batches: list[Sequence[ReceivedEvent]] = []
    async with opened(bench, position=position) as receiver:
        receiver.read_columns()
        while sum(map(len, batches)) < 252:
            batches.append(await receiver.receive(events_max=100, wait_max=SOON))
            assert 1 <= len(batches[-1]) <= 100

    parts = [to_columns(batch, tuple(COLUMNS), "0") for batch in batches]
    assert (
        pa.Table.from_batches(parts).to_pylist()
        == to_columns(events, tuple(COLUMNS), "0").to_pylist()
    )
    assert [event for batch in batches for event in batch] == events


@clause
async def no_more_than_events_max_are_returned(bench: Bench) -> None:
    async with opened(bench) as receiver:
        await bench.publish("0", *numbered(7))
        batches: list[Sequence[ReceivedEvent]] = []
        while sum(len(batch) for batch in batches) < 7:
            batches.append(await receiver.receive(events_max=3, wait_max=SOON))

    assert bodies([event for batch in batches for event in batch]) == numbered(7)
    assert max(len(batch) for batch in batches) <= 3


@clause
async def a_waiting_receive_returns_as_soon_as_there_is_an_event(bench: Bench) -> None:
    async with opened(bench) as receiver:
        waiting = asyncio.create_task(
            receiver.receive(events_max=10, wait_max=timedelta(seconds=30))
        )
        await asyncio.sleep(0.05)
        begun = time.monotonic()
        await bench.publish("0", b"now")
        events = await waiting

    assert bodies(list(events)) == [b"now"]
    assert time.monotonic() - begun < 5


@clause
async def an_empty_receive_takes_wait_max(bench: Bench) -> None:
    async with opened(bench) as receiver:
        for wait_max in (BRIEFLY, timedelta(0)):
            begun = time.monotonic()
            events = await receiver.receive(events_max=10, wait_max=wait_max)
            waited = time.monotonic() - begun

            assert list(events) == []
            assert 0.9 * wait_max.total_seconds() <= waited < 10


@clause
async def earliest_begins_at_the_oldest_event(bench: Bench) -> None:
    await bench.publish("0", b"any")
    async with opened(bench, position=EARLIEST) as receiver:
        events = await take(receiver, 1)

    assert events[0].sequence_number == 0


@clause
async def latest_begins_after_all_existing_events(bench: Bench) -> None:
    await bench.publish("0", b"before")
    async with opened(bench, position=EventPosition.latest()) as receiver:
        await bench.publish("0", b"after")
        events = await take(receiver, 1)

    assert bodies(events) == [b"after"]


@clause
async def a_sequence_number_begins_after_or_at_its_event(bench: Bench) -> None:
    first = bench.published["0"]
    await bench.publish("0", b"a", b"b", b"c")
    after = EventPosition.from_sequence_number(first + 1)
    at = EventPosition.from_sequence_number(first + 1, is_inclusive=True)
    async with opened(bench, position=after) as receiver:
        events_after = await take(receiver, 1)
    async with opened(bench, position=at) as receiver:
        events_at = await take(receiver, 2)

    assert bodies(events_after) == [b"c"]
    assert bodies(events_at) == [b"b", b"c"]


@clause
async def an_offset_begins_after_or_at_its_event(bench: Bench) -> None:
    async with opened(bench) as receiver:
        await bench.publish("0", b"a", b"b", b"c")
        offset = (await take(receiver, 3))[1].offset
    async with opened(bench, position=EventPosition.from_offset(offset)) as receiver:
        events_after = await take(receiver, 1)
    at = EventPosition.from_offset(offset, is_inclusive=True)
    async with opened(bench, position=at) as receiver:
        events_at = await take(receiver, 2)

    assert bodies(events_after) == [b"c"]
    assert bodies(events_at) == [b"b", b"c"]


@clause
async def a_time_begins_at_the_first_event_after_it(bench: Bench) -> None:
    await bench.publish("1", b"before")
    await asyncio.sleep(0.02)
    now = datetime.now(UTC)
    await asyncio.sleep(0.02)
    await bench.publish("1", b"after")
    async with opened(bench, "1", EventPosition.from_enqueued_time(now)) as receiver:
        events = await take(receiver, 1)

    assert bodies(events) == [b"after"]
    assert now < events[0].enqueued_time < now + timedelta(seconds=10)


@clause
async def a_time_includes_events_of_that_instant(bench: Bench) -> None:
    await bench.publish("1", b"before")
    await asyncio.sleep(0.02)
    now = datetime.now(UTC)
    await asyncio.sleep(0.02)
    await bench.publish("1", b"then")
    async with opened(bench, "1", EventPosition.from_enqueued_time(now)) as receiver:
        then = (await take(receiver, 1))[0].enqueued_time
    async with opened(bench, "1", EventPosition.from_enqueued_time(then)) as receiver:
        events_then = await take(receiver, 1)
    await asyncio.sleep(0.02)
    await bench.publish("1", b"after")
    later = EventPosition.from_enqueued_time(then + timedelta(microseconds=1))
    async with opened(bench, "1", later) as receiver:
        events_later = await take(receiver, 1)

    assert bodies(events_then) == [b"then"]
    assert bodies(events_later) == [b"after"]


@clause
async def a_position_that_never_existed_is_refused(bench: Bench) -> None:
    await bench.publish("0", b"any")
    async with bench.source() as source:
        for offset in ("nonsense", "999999999"):
            position = EventPosition.from_offset(offset)
            await refused(read(source, GROUP, "0", position), bench.refusal)


@clause
async def a_cancelled_receive_loses_nothing(bench: Bench) -> None:
    events: list[ReceivedEvent] = []

    async def cancelled_after(turns: int, receiving: asyncio.Task[Sequence[ReceivedEvent]]) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        receiving.cancel()
        with suppress(asyncio.CancelledError):
            events.extend(await receiving)

    async with opened(bench) as receiver:
        await bench.publish("0", *numbered(300))
        events += await take(receiver, 1, events_max=1)
        for attempt in range(100):  # there are events
            receiving = asyncio.create_task(receiver.receive(events_max=2, wait_max=SOON))
            await cancelled_after(attempt % 5, receiving)
        events += await take(receiver, 300 - len(events))
        for attempt in range(15):  # there are none, and one comes just then
            receiving = asyncio.create_task(receiver.receive(events_max=2, wait_max=SOON))
            await asyncio.sleep(0.01)
            await bench.publish("0", b"%d" % (300 + attempt))
            await cancelled_after(attempt % 5, receiving)
            events += await take(receiver, 301 + attempt - len(events))

            assert bodies(events) == numbered(301 + attempt)


@clause
async def the_newer_receiver_displaces_the_older(bench: Bench) -> None:
    if not bench.is_exclusive:
        return
    async with bench.source() as mine, bench.source() as theirs:
        older = await mine.open_receiver(GROUP, "0", end_of(bench, "0"))
        await bench.publish("0", b"for the older")
        await take(older, 1)
        waiting = asyncio.create_task(older.receive(events_max=1, wait_max=timedelta(seconds=30)))
        await asyncio.sleep(0.05)
        newer = await theirs.open_receiver(GROUP, "0", end_of(bench, "0"))
        await refused(waiting, ReceiverDisplacedError)
        await refused(older.receive(events_max=1, wait_max=SOON), ReceiverDisplacedError)
        await bench.publish("0", b"for the newer")
        events = await take(newer, 1)

    assert bodies(events) == [b"for the newer"]


@clause
async def other_partitions_and_groups_are_not_displaced(bench: Bench) -> None:
    async with bench.source() as source:
        receivers = [
            await source.open_receiver(group, partition_id, end_of(bench, partition_id))
            for group, partition_id in ((GROUP, "0"), (GROUP, "1"), (OTHER_GROUP, "0"))
        ]
        await bench.publish("0", b"zero")
        await bench.publish("1", b"one")
        received = [bodies(await take(receiver, 1)) for receiver in receivers]

    assert received == [[b"zero"], [b"one"], [b"zero"]]


@clause
async def closing_twice_is_allowed_and_receiving_afterwards_is_refused(bench: Bench) -> None:
    async with opened(bench) as receiver:
        await receiver.close()
        await receiver.close()
        await refused(receiver.receive(events_max=1, wait_max=SOON), SourceUnavailableError)


@clause
async def a_source_closes_at_once_with_its_receivers_and_opens_again(bench: Bench) -> None:
    source = bench.source()
    await source.open()
    await source.open()
    receiver = await source.open_receiver(GROUP, "0", end_of(bench, "0"))
    waiting = asyncio.create_task(receiver.receive(events_max=1, wait_max=timedelta(seconds=30)))
    await asyncio.sleep(0.05)
    begun = time.monotonic()
    await source.close()
    await source.close()
    closing_s = time.monotonic() - begun
    await refused(waiting, SourceUnavailableError)
    async with source:
        ids = await source.partition_ids()

    assert closing_s < 15
    assert ids[0] == "0"


@clause
async def an_unknown_partition_is_refused(bench: Bench) -> None:
    async with bench.source() as source:
        opening = await refused(source.open_receiver(GROUP, "77", EARLIEST), SourceRejectedError)
        asking = await refused(source.partition_properties("77"), SourceRejectedError)

    assert "77" in opening
    assert "77" in asking


@clause
async def an_unknown_group_is_a_configuration_error(bench: Bench) -> None:
    if not bench.is_exclusive:
        return
    async with bench.source() as source:
        await refused(read(source, "nobody", "0", EARLIEST), bench.refusal)
        checking = await refused(source.check_consumer_group("nobody"), ConfigurationError)

    assert "nobody" in checking


@clause
async def checking_a_group_disturbs_no_receiver(bench: Bench) -> None:
    async with bench.source() as source:
        await source.check_consumer_group(OTHER_GROUP)
        receiver = await source.open_receiver(GROUP, "0", end_of(bench, "0"))
        await source.check_consumer_group(GROUP)
        await bench.publish("0", b"still here")
        events = await take(receiver, 1)

    assert bodies(events) == [b"still here"]


@clause
async def properties_have_the_first_and_last_event_of_a_partition(bench: Bench) -> None:
    async with opened(bench) as receiver:
        await bench.publish("0", b"newest")
        (newest,) = await take(receiver, 1)
        async with bench.source() as source:
            full = await source.partition_properties("0")
            empty = await source.partition_properties("2")
            both = await source.properties_of(["2", "0"])

    assert full.beginning_sequence_number == 0
    assert full.last_enqueued_sequence_number == newest.sequence_number
    assert full.last_enqueued_offset == newest.offset
    assert full.last_enqueued_time == newest.enqueued_time
    assert (empty.last_enqueued_sequence_number, empty.last_enqueued_time) == (-1, None)
    assert (full.is_empty, empty.is_empty) == (False, True)
    assert list(both) == [empty, full]


@clause
async def a_receiver_knows_the_last_enqueued_event(bench: Bench) -> None:
    async with opened(bench) as receiver:
        before = receiver.last_enqueued
        await bench.publish("0", *numbered(20))
        events = await take(receiver, 20)
        after = receiver.last_enqueued

    assert before is None or before.sequence_number < events[0].sequence_number
    assert after is not None
    assert after.sequence_number == events[-1].sequence_number
    assert after.offset == events[-1].offset


@clause
async def new_partitions_are_listed_and_readable(bench: Bench) -> None:
    async with bench.source() as source:
        before = await source.partition_ids()
        await bench.grow()
        after = await source.partition_ids()
        new = str(len(before))
        receiver = await source.open_receiver(GROUP, new, EARLIEST)
        await bench.publish(new, b"first")
        events = await take(receiver, 1)

    assert list(before) == [str(number) for number in range(len(before))]
    assert list(after) == [*before, new]
    assert bodies(events) == [b"first"]


@pytest.mark.parametrize("check", CLAUSES, ids=lambda check: check.__name__)
async def test_a_source_meets_each_clause_of_the_contract(check, bench):
    """Each clause is stated by the name of its function."""
    await check(bench)

"""Isolating an event that kills the process: which events are delivered for one write."""

import asyncio
from datetime import timedelta

import pytest

from eventproc._core.delivery.failure import ALONE_COUNT, PART_MIN
from eventproc._group.pumps.stop_scope import StoppedError
from eventproc.models import ALONE, IN_BATCH, IN_PART, NOT_BEGUN, CloseReason, alone
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import seconds
from tests.unit.eventproc._delivery.guard_fixture import AT_LIMIT, LIMIT, GuardFixture, guarded


@pytest.mark.parametrize("newest", [3, None, 9])
async def test_every_event_received_at_first_is_delivered_alone(newest):
    """A dead process may have received each of them, whatever the hub last reported."""
    async with guarded(IN_PART, newest=newest) as fixture:
        await fixture.deliver(range(1, 6))

    assert (fixture.parts, fixture.isolations) == ([[1], [2], [3], [4], [5]], [ALONE] * 5)


async def test_without_a_death_the_guard_ends_with_its_first_event():
    """One count is stored, and it covers all further events."""
    async with guarded(NOT_BEGUN) as fixture:
        before = fixture.guard.is_over
        await fixture.deliver(range(1, 50))

    assert (before, fixture.parts, fixture.isolations, fixture.guard.is_over) == (
        False,
        [[*range(1, 50)]],
        [IN_BATCH],
        True,
    )


async def test_the_guard_ends_behind_the_last_event_that_a_dead_process_can_have_received():
    """Not before: each later batch is looked at again."""
    async with guarded(IN_BATCH, newest=9) as fixture:
        seen = []
        for first in range(1, 16, 5):
            await fixture.deliver(range(first, first + 5))
            seen.append(fixture.guard.is_over)

    parts, isolations = fixture.parts, fixture.isolations

    assert parts == [[*range(1, 6)], [*range(6, 11)], [*range(11, 16)]]
    assert isolations == [IN_PART, IN_PART, IN_BATCH]
    assert seen == [False, False, True]


async def test_where_the_service_keeps_the_position_as_many_are_suspects_as_it_sends_ahead():
    """They come again as the first ones, whatever the source reports as the newest event."""
    fixture = GuardFixture(IN_BATCH, newest=2, unsettled_max=6)
    await fixture.open()
    for batch in (range(1, 3), range(3, 6), [6, 7]):
        await fixture.deliver(batch)

    parts, isolations = fixture.parts, fixture.isolations

    assert parts == [[1, 2], [3, 4, 5], [6], [7]]
    assert isolations == [IN_PART, IN_PART, ALONE, IN_BATCH]


@pytest.mark.parametrize(
    ("new_from", "isolations"),
    [
        (1, [IN_BATCH, IN_BATCH]),
        (2, [ALONE, IN_BATCH, IN_BATCH]),
        (4, [IN_PART, IN_BATCH]),
        (6, [IN_PART, IN_PART]),
    ],
)
async def test_an_event_that_no_process_received_is_no_suspect(new_from, isolations):
    """A service that counts deliveries tells which ones are new, as far as the first read goes."""
    fixture = GuardFixture(IN_BATCH, unsettled_max=100, new_from=new_from)
    await fixture.open()
    await fixture.deliver(range(1, 6))
    await fixture.deliver([6, 7])

    assert fixture.isolations == isolations
    assert [number for part in fixture.parts for number in part] == [*range(1, 8)]


async def test_an_event_behind_those_that_the_service_sends_ahead_is_no_suspect():
    """The process that died cannot have had it: more are sent when earlier ones are settled."""
    fixture = GuardFixture(IN_PART, unsettled_max=2, new_from=5)
    await fixture.open()
    await fixture.deliver(range(1, 7))

    assert fixture.isolations == [ALONE, ALONE, IN_BATCH]


async def test_a_new_event_is_not_given_up_for_one_that_is_gone():
    """The event that killed processes was purged, and its count is still stored."""
    fixture = GuardFixture(AT_LIMIT, unsettled_max=100, new_from=1)
    await fixture.open()
    await fixture.deliver(range(1, 6))

    assert fixture.given_up == []
    assert (fixture.parts, fixture.isolations) == ([[1, 2, 3, 4, 5]], [IN_BATCH])


async def test_the_last_suspect_is_delivered_alone_at_once():
    """No other event of the part can have killed the process, so its count tells this one's."""
    async with guarded(IN_BATCH, newest=6) as fixture:
        for batch in (range(1, 6), [6, 7]):
            await fixture.deliver(batch)

    assert (fixture.parts, fixture.isolations) == (
        [[*range(1, 6)], [6], [7]],
        [IN_PART, ALONE, IN_BATCH],
    )


@pytest.mark.parametrize("is_given_up", [False, True])
async def test_events_alone_are_followed_by_parts(is_given_up):
    """A hundred are handled alone, of which one may be given up; then a process that has not died
    again writes less. Only the first one was delivered alone before."""
    found = AT_LIMIT if is_given_up else ALONE

    async with guarded(found) as fixture:
        await fixture.deliver(range(1, 151))

    assert fixture.given_up == ([(1, LIMIT)] if is_given_up else [])
    alone_count = ALONE_COUNT - is_given_up
    assert fixture.sizes()[: alone_count + 1] == [1] * alone_count + [PART_MIN]
    first = [ALONE] if is_given_up else [alone(2)]
    assert fixture.isolations[: alone_count + 1] == first + [ALONE] * (alone_count - 1) + [IN_PART]


async def test_one_count_is_stored_for_each_part_and_not_for_each_batch():
    """A part may come in several batches; the write before the next one covers its events."""
    async with guarded(IN_BATCH) as fixture:
        positions = []
        fixture.at_delivery = lambda: positions.append(fixture.setup.checkpointed())
        batch_sizes = [PART_MIN - 1, 1, 10, 10, 10, 10]
        first = 1
        for size in batch_sizes:
            await fixture.deliver(range(first, first + size))
            first += size

    sizes = fixture.sizes()

    assert sizes == [PART_MIN - 1, 1, 10, 10, 10, 2, 8]
    assert positions == [0, 0, *[PART_MIN] * 4, 2 * PART_MIN]


async def test_parts_of_events_after_those_alone_store_one_count_each():
    """As if the process had not died at an event alone."""
    async with guarded(IN_PART) as fixture:
        positions = []
        fixture.at_delivery = lambda: positions.append(fixture.setup.checkpointed())
        await fixture.deliver(range(1, ALONE_COUNT + 1))
        for first in range(ALONE_COUNT + 1, ALONE_COUNT + 61, 10):
            await fixture.deliver(range(first, first + 10))

    assert positions[ALONE_COUNT:] == [100, 100, 100, 100, 132, 132, 132]


async def test_a_give_up_that_fails_keeps_the_count_for_the_next_pump():
    """Otherwise it would deliver the event once more."""
    fixture = GuardFixture(AT_LIMIT)
    await fixture.open()
    fixture.fails_at = 1
    with pytest.raises(StoppedError):
        await fixture.deliver([1, 2])
    fixture.guard.set_last_isolation(CloseReason.SHUTDOWN)

    assert (fixture.progress.isolation, fixture.parts) == (AT_LIMIT, [])


@pytest.mark.parametrize(
    ("reason", "reached", "isolation"),
    [
        (CloseReason.SHUTDOWN, 3, IN_BATCH),  # 4 to 9 are suspects still.
        (CloseReason.SHUTDOWN, 8, IN_PART),  # Only 9 is left.
        (CloseReason.SHUTDOWN, 9, NOT_BEGUN),
        (CloseReason.STALLED, 3, IN_PART),  # The event at which it hangs may be the one.
    ],
)
async def test_the_count_that_is_stored_when_the_partition_closes(reason, reached, isolation):
    """Events that are no longer suspects are delivered by the next owner in batches again."""
    fixture = GuardFixture(IN_BATCH, newest=9)
    await fixture.open()
    await fixture.deliver(range(1, reached + 1))
    fixture.guard.set_last_isolation(reason)

    assert fixture.progress.isolation == isolation


async def test_an_event_that_was_not_handled_does_not_count_among_those_alone():
    """The pump was stopped during the hundredth: the next owner delivers it alone."""
    fixture = GuardFixture(IN_PART)
    await fixture.open()
    fixture.fails_at = ALONE_COUNT
    with pytest.raises(StoppedError):
        await fixture.deliver(range(1, ALONE_COUNT + 10))
    fixture.guard.set_last_isolation(CloseReason.SHUTDOWN)

    assert (fixture.sizes(), fixture.progress.isolation) == ([1] * ALONE_COUNT, IN_PART)


async def test_a_partition_without_a_position_closes():
    """Reading began at a time, there is no checkpoint, and no event was handled yet."""
    fixture = GuardFixture(NOT_BEGUN)
    await fixture.open(is_position_known=False)
    fixture.fails_at = 1
    with pytest.raises(StoppedError):
        await fixture.deliver([1])
    fixture.guard.set_last_isolation(CloseReason.SHUTDOWN)

    assert (fixture.progress.isolation, fixture.setup.checkpoint()) == (NOT_BEGUN, None)


async def test_a_stop_ends_the_wait_for_the_count_to_be_stored():
    """The store does not answer; no event is delivered without its count."""
    fixture = GuardFixture(NOT_BEGUN)
    await fixture.open()
    fixture.checkpoints.is_failing = True
    asyncio.get_running_loop().call_later(
        3, lambda: fixture.stop.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=9))
    )
    asking = asyncio.create_task(fixture.deliver([1]))
    await asyncio.wait([asking], timeout=60)
    asking.cancel()
    error = asking.exception() if asking.done() else None

    assert (type(error), fixture.parts, asyncio.get_running_loop().time()) == (StoppedError, [], 3)


@pytest.mark.parametrize("found", [NOT_BEGUN, IN_BATCH, ALONE])
def test_the_isolation_is_warned_of_with_the_count_that_was_found(found, caplog):
    """Only after a death, and once."""

    async def scenario():
        async with guarded(found) as fixture:
            await fixture.deliver([1])
            await fixture.deliver([2])
        await seconds(0)

    caplog.set_level("WARNING")
    run_virtual(scenario())

    warned = [
        vars(record).get("delivery_count")
        for record in caplog.records
        if vars(record).get("event") == "poison_isolation_started"
    ]
    assert warned == {NOT_BEGUN: [], IN_BATCH: [1], ALONE: [2]}[found]

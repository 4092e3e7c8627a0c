"""When a checkpoint is due, how a failed write is repeated, and whose record it may replace."""

import asyncio
from datetime import timedelta
from itertools import cycle

import pytest

from eventproc import (
    CheckpointPolicy,
    OwnershipLostError,
    StoreRejectedError,
    StoreUnavailableError,
)
from eventproc._core.delivery.checkpoints import operators_writer
from eventproc._delivery.checkpointer import Checkpointer
from eventproc.models import IN_BATCH, NOT_BEGUN, CheckpointResult, WriteOutcome
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds
from tests.unit.eventproc._delivery.checkpoint_fixture import (
    EAGER,
    MANUAL,
    CheckpointFixture,
    handle,
    write,
    writing,
)

REFUSED = StoreRejectedError("no right")


async def opened(policy: CheckpointPolicy = MANUAL) -> tuple[CheckpointFixture, Checkpointer]:
    """Return the only checkpointer of a partition that has no checkpoint."""
    fixture = CheckpointFixture(Setup())
    await fixture.store.open()
    return fixture, fixture.checkpointer("a", policy)


async def test_the_age_of_unwritten_progress_is_that_of_its_oldest_event():
    """Zero without an event, and as soon as it is stored."""
    _, checkpointer = await opened()
    ages_s = []
    for number in (None, 0, 1):
        await seconds(2)
        if number is not None:
            handle(checkpointer, number)
        ages_s.append(checkpointer.uncommitted_age_s)
    await checkpointer.flush()

    assert [*ages_s, checkpointer.uncommitted_age_s] == [0, 0, 2, 0]


async def test_a_write_is_due_an_interval_after_the_oldest_event():
    """Later events do not delay it, and neither do earlier writes hasten it."""
    fixture, checkpointer = await opened(CheckpointPolicy(interval=timedelta(seconds=5)))
    async with writing(checkpointer):
        await seconds(1)
        for number in range(4):  # At 1, 4, 7 and 10.
            handle(checkpointer, number)
            await seconds(3)
        await seconds(1)
        handle(checkpointer, 4)  # At 14.
        await seconds(60)

    assert fixture.written_at_s == [6, 12, 19]


async def test_a_write_is_due_at_once_when_enough_events_are_handled():
    """Not before; each write begins the count anew, and events of one call count together."""
    policy = CheckpointPolicy(max_events=3, interval=timedelta(hours=1))
    fixture, checkpointer = await opened(policy)
    async with writing(checkpointer):
        for number, count in enumerate((1, 1, 1, 2, 1, 5, 1)):
            checkpointer.progress.advance(number, str(number))
            checkpointer.note(count)
            await seconds(1)

    assert fixture.written_at_s == [2, 4, 5]


@pytest.mark.parametrize("has_position", [True, False])
async def test_without_progress_that_can_be_stored_nothing_is_counted(has_position):
    """Otherwise delivery would wait for room that no write makes."""
    fixture, checkpointer = await opened(EAGER)
    if has_position:
        await write(checkpointer, 0)
    isolations = cycle((IN_BATCH, NOT_BEGUN))
    async with writing(checkpointer):
        for _ in range(20):
            if not has_position:
                checkpointer.progress.set_isolation(next(isolations))
            checkpointer.note(1)
            await seconds(0)
        await checkpointer.flush()

    assert (
        checkpointer.coverage.uncommitted.has_room,
        checkpointer.uncommitted_age_s,
        len(fixture.written_at_s),
    ) == (True, 0, int(has_position))


async def test_progress_is_counted_once_however_often_it_is_noted():
    """A handler may set its state, or be called, without any."""
    fixture, checkpointer = await opened(CheckpointPolicy(max_events=3, interval=None))
    async with writing(checkpointer):
        handle(checkpointer, 0)
        for _ in range(9):
            checkpointer.note(1)
        await seconds(1)
        found = len(fixture.written_at_s)

    assert found == 0


async def test_a_failed_write_is_repeated_after_longer_and_longer_waits():
    """With the newest progress; another flush ends the wait, and the waits begin anew."""
    fixture, checkpointer = await opened()
    fixture.is_failing = True
    asking = asyncio.create_task(write(checkpointer, 0))
    await seconds(4)  # Failures at 0, 1 and 3; the third wait lasts until 6.
    urging = asyncio.create_task(write(checkpointer, 1))
    await seconds(0.5)  # One more at 4; the wait after it lasts until 5.
    fixture.is_failing = False
    await asyncio.gather(asking, urging)

    assert (fixture.attempts, fixture.written_at_s, fixture.setup.checkpointed()) == (
        [1, 2, 3, 1],
        [5],
        1,
    )


async def test_a_flush_under_way_is_hastened_by_each_caller_once():
    """A caller that waits does not make all further retries immediate."""
    fixture, checkpointer = await opened()
    fixture.is_failing = True
    tasks = [asyncio.create_task(write(checkpointer, number)) for number in range(3)]
    await seconds(60)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    assert len(fixture.attempts) < 15


async def test_a_flush_during_a_write_that_fails_has_it_repeated_at_once():
    """As one during the wait after it."""
    fixture, checkpointer = await opened()
    fixture.write_s, fixture.is_failing = 1.0, True
    asyncio.get_running_loop().call_later(1.5, setattr, fixture, "is_failing", False)
    first = asyncio.create_task(write(checkpointer, 0))
    await seconds(0.5)
    await write(checkpointer, 1)
    await first

    assert fixture.written_at_s == [2]


async def test_the_first_write_that_succeeds_ends_the_waits():
    """The next failure begins with the shortest one."""
    fixture, checkpointer = await opened()
    for number in (0, 1):
        fixture.is_failing = True
        asyncio.get_running_loop().call_later(2, setattr, fixture, "is_failing", False)
        await write(checkpointer, number)

    assert fixture.attempts == [1, 2, 1, 2]


async def test_a_refused_write_is_shown_until_one_succeeds():
    """An operator has to act; a mere outage is not shown as a refusal."""
    fixture, checkpointer = await opened()
    fixture.is_failing = True
    asking = asyncio.create_task(write(checkpointer, 0))
    seen = []
    for error in (StoreUnavailableError("no answer"), REFUSED, StoreUnavailableError("none")):
        fixture.write_error = error
        await seconds(5)
        seen.append(checkpointer.refusal)
    fixture.is_failing = False
    await asking

    assert [*seen, checkpointer.refusal] == [None, REFUSED, REFUSED, None]


async def test_a_refusal_while_the_checkpoint_is_read_again_is_shown():
    """The write was lost to another writer, and what it wrote cannot be read."""
    fixture, checkpointer = await opened()
    await write(checkpointer, 0)
    await fixture.store_by("azure", 3, is_reset=True)
    fixture.read_error = REFUSED
    asking = asyncio.create_task(write(checkpointer, 4))
    await seconds(5)
    shown, stored = checkpointer.refusal, fixture.setup.checkpointed()
    fixture.read_error = None
    await asking

    assert (shown, stored, checkpointer.refusal, fixture.setup.checkpointed()) == (
        REFUSED,
        3,
        None,
        4,
    )


@pytest.mark.parametrize("number", [2, 9])
async def test_a_checkpoint_that_an_operator_moved_is_never_replaced(number):
    """The partition begins again there, with another pump; the lease is not asked for."""
    fixture, checkpointer = await opened()
    await write(checkpointer, 5)
    await fixture.store_by(operators_writer("x"), number, is_reset=True)
    with pytest.raises(OwnershipLostError):
        await write(checkpointer, 6)

    assert (fixture.setup.checkpointed(), fixture.verify_count) == (number, 0)


@pytest.mark.parametrize(
    ("mine", "other", "is_replaced"),
    [
        ("7", "kafka:6", False),
        ("kafka:7", "6", False),
        ("kafka:7", "kafka:6", True),
        ("7", "-1", True),  # Before the first event: that is of both protocols.
        ("kafka:7", "-1", True),
    ],
)
def test_only_an_offset_of_the_same_protocol_is_replaced(mine, other, is_replaced):
    """The numbers of two protocols cannot be compared."""

    async def scenario():
        fixture, checkpointer = await opened()
        await fixture.store_by("azure", 6, offset=other, is_reset=True)
        checkpointer.progress.advance(7, mine)
        try:
            await checkpointer.flush()
        except OwnershipLostError:
            return False
        return fixture.setup.checkpointed() == 7

    assert run_virtual(scenario()) == is_replaced


async def test_its_own_write_of_unknown_outcome_needs_no_proof_of_ownership():
    """It took effect: the checkpoint names this pump. So the lease need not be renewed."""
    fixture, checkpointer = await opened()
    for number in (0, 1):
        fixture.unanswered_count = 1
        await write(checkpointer, number)

    assert (fixture.setup.checkpointed(), fixture.verify_count, fixture.attempts) == (1, 0, [1, 1])


async def test_a_checkpoint_that_did_not_change_needs_no_proof_of_ownership():
    """A write of unknown outcome did not arrive, and nobody else wrote."""
    fixture, checkpointer = await opened()
    arrives, lost = fixture.write, [0, 1]

    async def lose(update):
        if update.sequence_number in lost:
            lost.remove(update.sequence_number)
            return CheckpointResult(outcome=WriteOutcome.UNKNOWN)
        return await arrives(update)

    fixture.write = lose
    await write(checkpointer, 0)
    await fixture.store_by("azure", 0, is_reset=True)
    await write(checkpointer, 1)

    assert (fixture.setup.checkpointed(), fixture.verify_count) == (1, 1)


async def test_progress_behind_the_stored_position_counts_as_stored():
    """Another program moved the checkpoint ahead; the next event beyond it is written."""
    fixture, checkpointer = await opened()
    await write(checkpointer, 5)
    await fixture.store_by("azure", 8, is_reset=True)
    seen = []
    for number in (6, 7, 8, 9):
        await write(checkpointer, number)
        seen.append((fixture.setup.checkpointed(), checkpointer.uncommitted_age_s))
        await seconds(1)

    assert (seen, len(fixture.written_at_s)) == ([(8, 0), (8, 0), (8, 0), (9, 0)], 3)


async def test_a_checkpointer_in_the_background_ends_when_the_partition_is_lost():
    """While it waits for progress, and when a write shows the loss."""
    ends = []
    for is_noticed_by_write in (False, True):
        fixture, checkpointer = await opened(EAGER)
        running = asyncio.create_task(checkpointer.run())
        await seconds(1)
        if is_noticed_by_write:
            await fixture.store_by("b/1/1", 3, is_reset=True)
            fixture.owner = "b"
            handle(checkpointer, 4)
        else:
            checkpointer.lose()
        await asyncio.wait([running], timeout=9)
        ends.append(running.done() and running.exception())
        running.cancel()

    assert ends == [None, None]


async def test_a_flush_for_a_cancelled_call_ends_although_the_call_suppressed_that():
    """It would otherwise retry until the store is back, and keep the partition."""
    fixture, checkpointer = await opened()
    fixture.is_failing = True

    async def call(*, is_of_call: bool) -> None:
        try:
            await seconds(5)
        except asyncio.CancelledError:
            handle(checkpointer, 0)
            await checkpointer.flush(is_of_call=is_of_call)

    ends = []
    for is_of_call in (True, False):
        task = asyncio.create_task(call(is_of_call=is_of_call))
        await seconds(1)
        task.cancel()
        await asyncio.wait([task], timeout=20)
        ends.append(task.done())
        task.cancel()
        await asyncio.wait([task])

    assert ends == [True, False]


async def test_a_flush_for_a_call_that_is_not_cancelled_retries():
    """The handler awaits its checkpoint however long the store is out."""
    fixture, checkpointer = await opened()
    fixture.is_failing = True
    asyncio.get_running_loop().call_later(5, setattr, fixture, "is_failing", False)
    handle(checkpointer, 0)
    await checkpointer.flush(is_of_call=True)

    assert fixture.setup.checkpointed() == 0

"""Whose checkpoint writes succeed: those of the owner that can prove it, not a former owner's."""

import asyncio

import pytest

from eventproc import OwnershipLostError, StoreUnavailableError
from eventproc._core.delivery.checkpoints import operators_writer
from eventproc.models import (
    CheckpointResult,
    CheckpointUpdate,
    WriteOutcome,
)
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup
from tests.unit.eventproc._delivery.checkpoint_fixture import (
    EAGER,
    CheckpointFixture,
    former_and_next,
    handle,
    write,
    writer_of,
    writing,
)


async def test_adoption_makes_the_former_owners_writes_fail():
    """Although the new owner has stored no progress of its own yet."""
    setup = Setup()
    fixture, former, following = await former_and_next(setup)
    fixture.owner = "b"
    found = await fixture.adopt(following)
    with pytest.raises(OwnershipLostError):
        await write(former, 9)
    assert found is not None

    assert (found.sequence_number, setup.checkpointed()) == (5, 5)


async def test_after_the_loss_of_the_partition_nothing_is_written():
    """Although no other owner has adopted the checkpoint, so that the write would succeed."""
    setup = Setup()
    _, former, _ = await former_and_next(setup)
    former.lose()
    with pytest.raises(OwnershipLostError):
        await write(former, 9)

    assert setup.checkpointed() == 5


async def test_a_write_of_unknown_outcome_is_repeated_after_reading():
    """Here the first write never reached the store."""
    setup = Setup()
    fixture, former, _ = await former_and_next(setup)
    arrives = fixture.write
    lost: list[CheckpointUpdate] = []

    async def lose_first(update):
        if lost:
            return await arrives(update)
        lost.append(update)
        return CheckpointResult(outcome=WriteOutcome.UNKNOWN)

    fixture.write = lose_first
    await write(former, 9)

    assert (len(lost), setup.checkpointed()) == (1, 9)


async def test_ownership_is_proved_after_the_checkpoint_was_read():
    """A proof from before says nothing about the writer whose checkpoint is to be replaced."""
    setup = Setup()
    fixture, former, following = await former_and_next(setup)
    operator = fixture.checkpointer("operator")
    fixture.owner = "operator"
    await fixture.adopt(operator)
    fixture.owner = "a"

    async def next_takes_over() -> None:
        fixture.before_verify = lambda: None
        fixture.owner = "b"
        await fixture.adopt(following)

    fixture.before_verify = next_takes_over
    with pytest.raises(OwnershipLostError):
        await write(former, 9)

    assert (writer_of(setup), setup.checkpointed()) == ("b/1/2", 5)


async def test_an_adoption_of_unknown_outcome_raises_and_can_be_repeated():
    """The second adoption succeeds whether or not the first one took effect."""
    setup = Setup()
    fixture, _, _ = await former_and_next(setup)
    fixture.owner = "b"
    fixture.unanswered_count = 1
    following = fixture.checkpointer("b")
    with pytest.raises(StoreUnavailableError, match="did not say"):
        await fixture.adopt(following)
    found = await fixture.adopt(following)
    await write(following, 6)

    unanswered_count, stored = fixture.unanswered_count, setup.checkpointed()

    assert found is not None
    assert (found.sequence_number, unanswered_count, stored) == (5, 0, 6)


async def test_a_repeated_adoption_still_knows_that_an_operator_moved_the_checkpoint():
    """The first answer was lost; the second adoption finds its own write, not the operator's."""
    setup = Setup()
    fixture, _, following = await former_and_next(setup)
    await fixture.store_by(operators_writer("x"), 8)
    fixture.owner = "b"
    fixture.unanswered_count = 1
    adoption = fixture.adoption(following)
    with pytest.raises(StoreUnavailableError):
        await adoption.attempt()
    await adoption.attempt()

    assert (writer_of(setup), adoption.is_from_operator) == ("b/1/2", True)


async def test_after_the_mark_of_a_former_hub_nothing_is_written():
    """A call that ends later, such as one in a key lane, has handled an event of that hub."""
    setup = Setup()
    _, former, _ = await former_and_next(setup)
    await former.mark_former_hub()
    marked = setup.checkpoint()
    with pytest.raises(OwnershipLostError):
        await write(former, 9)

    assert setup.checkpoint() == marked


async def test_at_most_one_write_is_in_flight():
    """The policy and several flushes ask for one at once, and some flushes are cancelled."""
    setup = Setup()
    fixture = CheckpointFixture(setup)
    fixture.write_s = 1.0
    await fixture.store.open()
    checkpointer = fixture.checkpointer("a", EAGER)
    await fixture.adopt(checkpointer)
    async with writing(checkpointer):
        handle(checkpointer, 0)
        await asyncio.sleep(0.1)
        cancelled = [asyncio.create_task(write(checkpointer, n)) for n in (1, 2, 3)]
        await asyncio.sleep(1.5)
        for task in cancelled:
            task.cancel()
        await write(checkpointer, 4)

    assert (fixture.in_flight_count_max, setup.checkpointed()) == (1, 4)


@pytest.mark.parametrize(
    ("newest", "write_count"),
    [pytest.param(1, 2, id="new progress"), pytest.param(0, 1, id="no new progress")],
)
def test_the_next_write_follows_one_whose_caller_was_cancelled(newest, write_count):
    """It waits for that one, and replaces what that one stored: so it is not refused.

    Progress that the other one stored is not written again.
    """

    async def scenario():
        setup = Setup()
        fixture = CheckpointFixture(setup)
        fixture.write_s = 1.0
        await fixture.store.open()
        checkpointer = fixture.checkpointer("a")
        await fixture.adopt(checkpointer)
        handle(checkpointer, 0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await checkpointer.flush()
        for number in range(1, newest + 1):
            handle(checkpointer, number)
        await checkpointer.flush()
        assert (fixture.in_flight_count_max, setup.checkpointed()) == (1, newest)
        return len(fixture.written_at_s), fixture.read_count

    only_to_adopt = 1
    assert run_virtual(scenario()) == (write_count, only_to_adopt)


async def test_waiting_for_room_ends_with_an_error_if_the_partition_is_lost():
    """No write would ever make room."""
    fixture = CheckpointFixture(Setup())
    await fixture.store.open()
    checkpointer = fixture.checkpointer("a", EAGER)
    for number in range(10):
        handle(checkpointer, number)
    asyncio.get_running_loop().call_later(1, checkpointer.lose)
    with pytest.raises(OwnershipLostError):
        await checkpointer.until_room()

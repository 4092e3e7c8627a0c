"""Checkpoint writes that meet another one, of this pump or of another program."""

import asyncio
from datetime import timedelta

import pytest

from eventproc import CheckpointPolicy, OwnershipLostError
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import seconds
from tests.scenarios.test_checkpoint_writes import opened
from tests.unit.eventproc._delivery.checkpoint_fixture import handle, write, writing


def changes_logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int | None]]:
    """Return the logged events of checkpoints, and the position that each names."""
    found = [vars(record) for record in caplog.records]
    return [
        (str(fields.get("event")), fields.get("sequence_number"))
        for fields in found
        if str(fields.get("event")).startswith("checkpoint_")
    ]


async def test_a_write_that_another_program_overtook_is_repeated_at_once(caplog):
    """This processor still owns the partition. The log has the other one's position, no failure."""
    fixture, checkpointer = await opened()
    await write(checkpointer, 0)
    await fixture.store_by("azure", 3, is_reset=True)
    await write(checkpointer, 4)

    assert (fixture.attempts, fixture.setup.checkpointed()) == ([], 4)
    assert changes_logged(caplog) == [("checkpoint_changed_elsewhere", 3)]


async def test_a_write_of_unknown_outcome_is_not_taken_for_one_of_another_program(caplog):
    """It took effect, and is found when the checkpoint is read again."""
    fixture, checkpointer = await opened()
    fixture.unanswered_count = 1
    await write(checkpointer, 0)

    assert fixture.setup.checkpointed() == 0
    assert changes_logged(caplog) == [("checkpoint_failed", None)]


def test_a_write_after_one_of_a_cancelled_caller_counts_no_event_as_stored_twice():
    """Otherwise the policy would count too few events, and write the next ones too late."""

    async def scenario():
        policy = CheckpointPolicy(max_events=2, interval=None)
        fixture, checkpointer = await opened(policy)
        fixture.write_s = 1.0
        async with writing(checkpointer):
            handle(checkpointer, 0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await checkpointer.flush()
            handle(checkpointer, 1)
            await checkpointer.flush()
            for number in (2, 3):
                handle(checkpointer, number)
            await seconds(5)
            return fixture.setup.checkpointed()

    assert run_virtual(scenario()) == 3


async def test_events_handled_during_a_write_are_counted_once():
    """However often they are noted after it."""
    fixture, checkpointer = await opened()
    fixture.write_s = 1.0
    handle(checkpointer, 0)
    asking = asyncio.create_task(checkpointer.flush())
    await seconds(0.5)
    handle(checkpointer, 1)
    await asking
    checkpointer.note(1)

    assert checkpointer.coverage.uncommitted.count == 1


async def test_events_handled_during_a_write_are_due_an_interval_after_it():
    """The time when the stored events would have been due says nothing of them."""
    fixture, checkpointer = await opened(CheckpointPolicy(interval=timedelta(seconds=5)))
    fixture.write_s = 1.0
    async with writing(checkpointer):
        handle(checkpointer, 0)
        await seconds(3)
        asking = asyncio.create_task(checkpointer.flush())  # Stored at 4.
        await seconds(0.5)
        handle(checkpointer, 1)
        await asking
        await seconds(60)

    assert fixture.written_at_s == [4, 10]


async def test_no_transaction_gets_its_turn_after_the_loss_of_the_partition():
    """It would work in vain: its commit would be refused."""
    _, checkpointer = await opened()
    checkpointer.lose()
    with pytest.raises(OwnershipLostError):
        async with checkpointer.alone():
            pass


def test_a_failure_ends_with_a_write_that_is_won(caplog):
    """Not when the store answers that another writer was first, and fails again after that."""

    async def scenario():
        fixture, checkpointer = await opened()
        await write(checkpointer, 0)
        fixture.is_failing = True
        writing = asyncio.ensure_future(write(checkpointer, 4))
        await seconds(2)
        await fixture.store_by("azure", 3, is_reset=True)
        fixture.is_failing = False
        fixture.before_verify = lambda: setattr(fixture, "is_failing", True)
        await seconds(4)
        fixture.is_failing = False
        await writing

    caplog.set_level("INFO")
    run_virtual(scenario())

    assert [event for event, _ in changes_logged(caplog)] == [
        "checkpoint_failed",
        "checkpoint_changed_elsewhere",
        "checkpoint_recovered",
    ]

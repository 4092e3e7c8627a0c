"""Handled events that are not stored yet: their number is limited, and none is forgotten."""

import asyncio
from datetime import timedelta

import pytest

from eventproc import Backoff, CheckpointPolicy
from eventproc._delivery.checkpointer import Checkpointer
from eventproc.testing import StoreFaults
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.unit.eventproc._delivery.checkpoint_fixture import CheckpointFixture, handle

LIMIT = 25
BATCH = 10


@pytest.mark.parametrize(
    "settings",
    [{}, {"key_concurrency": 3, "max_in_flight_events": BATCH}],
    ids=["in order", "lanes"],
)
async def test_handling_stops_at_max_uncommitted_events(settings):
    """All of them would be delivered again after a crash. It goes on when the store is back.

    Events that were received by then are handled.
    """
    setup = Setup()
    policy = CheckpointPolicy(
        max_events=5, interval=timedelta(seconds=1), max_uncommitted_events=LIMIT
    )
    processor = setup.processor(
        lambda: Noting(setup),
        checkpoint_policy=policy,
        batch_size_max=BATCH,
        ownership_expiration=timedelta(hours=1),
        key_selector=lambda event: event.sequence_number % 3,
        **settings,
    )
    async with processor:
        await seconds(5)
        setup.store_by_owner["a"].is_out = True
        setup.publish(10 * LIMIT)
        await seconds(300)
        stopped_at = len(setup.handled)
        setup.store_by_owner["a"].is_out = False
        await seconds(300)

    assert LIMIT <= stopped_at < LIMIT + BATCH
    assert len(setup.handled) == 10 * LIMIT
    assert setup.checkpointed() == 10 * LIMIT - 1


async def test_a_slow_store_holds_handling_up_at_the_same_limit():
    """Events are handled while a checkpoint is written; a kill would repeat all of them."""
    setup, waiting = Setup(), []
    policy = CheckpointPolicy(max_events=5, max_uncommitted_events=LIMIT)

    class Counting(Noting):
        async def process_events(self, context, events):
            await super().process_events(context, events)
            waiting.append(events[-1].sequence_number - (setup.checkpointed() or -1))
            await seconds(0.1)

    processor = setup.processor(
        lambda: Counting(setup), checkpoint_policy=policy, batch_size_max=BATCH
    )
    async with processor:
        await seconds(5)
        setup.store_by_owner["a"].faults = StoreFaults(
            delay_min=timedelta(seconds=4), delay_max=timedelta(seconds=4)
        )
        setup.publish(10 * LIMIT)
        await seconds(300)

    assert len(setup.handled) == 10 * LIMIT
    assert LIMIT <= max(waiting) <= LIMIT + BATCH


async def writing(policy: CheckpointPolicy) -> tuple[Setup, CheckpointFixture, Checkpointer]:
    """A checkpointer whose write of event 0 is under way for another second."""
    setup = Setup()
    fixture = CheckpointFixture(setup)
    await fixture.store.open()
    checkpointer = fixture.checkpointer("a", policy)
    await fixture.adopt(checkpointer)
    fixture.write_s = 2.0
    handle(checkpointer, 0)
    return setup, fixture, checkpointer


def test_progress_noted_during_a_write_is_still_due():
    """By count or by age; otherwise it would wait for the next event."""

    async def scenario(policy, count):
        setup, _, checkpointer = await writing(policy)
        running = asyncio.create_task(checkpointer.run())
        for number in range(1, policy.max_events or 0):
            handle(checkpointer, number)
        await seconds(1)
        for number in range(100, 100 + count):
            handle(checkpointer, number)
        unwritten_s = 0.0
        await seconds(1.5)
        unwritten_s = checkpointer.uncommitted_age_s
        await seconds(8)
        running.cancel()
        return setup.checkpointed(), unwritten_s > 0

    by_count = CheckpointPolicy(max_events=3, interval=None)
    by_time = CheckpointPolicy(max_events=3, interval=timedelta(seconds=5))

    assert run_virtual(scenario(by_count, 3)) == (102, True)
    assert run_virtual(scenario(by_time, 1)) == (100, True)


async def test_progress_noted_during_a_write_counts_as_uncommitted():
    """A slow store must not remove the limit."""
    policy = CheckpointPolicy(max_events=1, interval=None, max_uncommitted_events=3)
    _, _, checkpointer = await writing(policy)
    running = asyncio.create_task(checkpointer.run())
    await seconds(1)
    for number in range(1, 4):
        handle(checkpointer, number)
    await seconds(1.5)  # The first is written; of the others none.
    has_room = checkpointer.coverage.uncommitted.has_room
    await seconds(3)
    running.cancel()

    assert (has_room, checkpointer.coverage.uncommitted.has_room) == (False, True)


async def test_a_stop_just_after_an_outage_stores_handled_events():
    """The write that waits for its retry is repeated at once."""
    setup = Setup()
    processor = setup.processor(
        lambda: Noting(setup),
        ownership_expiration=timedelta(hours=1),
        shutdown_timeout=timedelta(seconds=2),
        receiver_backoff=Backoff(initial=timedelta(seconds=1), maximum=timedelta(minutes=10)),
    )
    await processor.start()
    await seconds(5)
    setup.store_by_owner["a"].is_out = True
    setup.publish(3)
    await seconds(100)
    setup.store_by_owner["a"].is_out = False
    await processor.stop()

    assert setup.checkpointed() == 2
    assert processor.statistics().abandoned == ()


async def test_a_call_during_a_write_that_succeeds_does_not_shorten_the_next_back_off():
    """It asked for the write before to be repeated at once, and that was not necessary."""
    setup = Setup()
    fixture = CheckpointFixture(setup)
    fixture.write_s = 1.0
    await fixture.store.open()
    checkpointer = fixture.checkpointer("a")
    await fixture.adopt(checkpointer)
    began_s = []
    write_through = fixture.write

    async def recorded(update):
        began_s.append(asyncio.get_running_loop().time())
        return await write_through(update)

    fixture.write = recorded
    handle(checkpointer, 0)
    first = asyncio.create_task(checkpointer.flush())
    await asyncio.sleep(0.5)
    handle(checkpointer, 1)
    second = asyncio.create_task(checkpointer.flush())
    await first
    fixture.is_failing = True
    await asyncio.sleep(1.001)
    fixture.is_failing = False
    await second
    _, failed_s, repeated_s = began_s

    # A write takes a second; a back-off varies between half of it and all of it.
    assert repeated_s - failed_s >= 1.0 + Backoff().initial.total_seconds() / 2


async def test_events_that_are_counted_after_they_were_stored_are_not_due():
    """A handler's thread moved the position, and a write stored that before the loop counted."""
    fixture = CheckpointFixture(Setup())
    await fixture.store.open()
    checkpointer = fixture.checkpointer("a", CheckpointPolicy(max_events=1))
    await fixture.adopt(checkpointer)
    checkpointer.progress.advance(0, "o0")
    await checkpointer.flush()
    checkpointer.note(1)
    await seconds(1)

    assert checkpointer.uncommitted_age_s == 0


async def test_the_last_checkpoint_has_all_the_time_that_calls_left():
    """No call is under way, so an outage of half the shutdown time-out loses no progress."""
    setup = Setup()
    processor = setup.processor(
        lambda: Noting(setup),
        ownership_expiration=timedelta(hours=1),
        shutdown_timeout=timedelta(seconds=10),
        receiver_backoff=Backoff(maximum=timedelta(seconds=1)),
    )
    await processor.start()
    await seconds(5)
    setup.store_by_owner["a"].is_out = True
    setup.publish(3)
    await seconds(1)
    stopping = asyncio.create_task(processor.stop())
    await seconds(5)
    setup.store_by_owner["a"].is_out = False
    await stopping

    assert (setup.checkpointed(), processor.statistics().abandoned) == (2, ())

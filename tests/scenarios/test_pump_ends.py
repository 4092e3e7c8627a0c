"""How one pump ends: its budgets, its last checkpoint, its reason, and what it leaves behind."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import NoReturn

import pytest

from eventproc import Backoff, CheckpointPolicy, CloseReason, OwnershipLostError
from eventproc.sources.memory import MemoryEventSource
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.unit.eventproc._delivery.pump_fixture import SHUTDOWN_S, PumpFixture

NEVER_S = 1e6


def events_logged(caplog, name: str) -> list[dict]:
    """Return the fields of each logged event of this name."""
    return [vars(r) for r in caplog.records if vars(r).get("event") == name]


@pytest.mark.parametrize("within_s", [None, 50, 200])
async def test_calls_close_and_last_checkpoint_share_the_time_to_end(within_s, caplog):
    """Calls 75 %, ``close`` 12.5 %, the checkpoint the rest: the whole is never exceeded."""
    whole_s = within_s or SHUTDOWN_S
    fixture = PumpFixture()
    fixture.setup.publish(2)
    fixture.handler.close_s = NEVER_S
    running = await fixture.start()
    fixture.handler.call_s = NEVER_S
    fixture.setup.publish(1)
    await seconds(1)
    fixture.checkpoints.is_failing = True
    begun_s = asyncio.get_running_loop().time()
    took_s = await running.end(within_s=within_s)

    assert [at_s - begun_s for at_s in fixture.handler.cut_at_s] == [
        pytest.approx(0.75 * whole_s),
        pytest.approx(0.875 * whole_s),
    ]
    assert took_s == pytest.approx(whole_s)
    assert running.task.result() is CloseReason.SHUTDOWN
    (cancelled,) = events_logged(caplog, "handler_cancelled")
    assert (cancelled["sequence_number"], cancelled["count"]) == (2, 1)
    (abandoned,) = events_logged(caplog, "checkpoint_abandoned")
    assert abandoned["sequence_number"] == 1


@pytest.mark.parametrize("within_s", [None, 50])
async def test_the_last_checkpoint_has_all_the_time_that_calls_and_close_left(within_s):
    """Here both take none."""
    fixture = PumpFixture()
    fixture.setup.publish(1)
    running = await fixture.start()
    fixture.checkpoints.is_failing = True

    assert await running.end(within_s=within_s) == pytest.approx(within_s or SHUTDOWN_S)


async def test_a_close_that_takes_too_long_leaves_time_for_the_last_checkpoint(caplog):
    """It suppresses its cancellation, and ends when the whole time is over."""
    fixture = PumpFixture()
    fixture.handler.close_s, fixture.handler.is_cancellable = 1.5 * SHUTDOWN_S, False
    fixture.checkpoints.write_s = 1.0
    fixture.setup.publish(1)
    running = await fixture.start()
    await seconds(5)
    await running.end()

    assert fixture.setup.checkpointed() == 0
    assert not events_logged(caplog, "checkpoint_abandoned")


async def test_a_partition_that_another_processor_owns_is_neither_served_nor_an_error():
    """Its new owner was faster; the handler was never called, so it is not closed either."""
    fixture = PumpFixture()
    fixture.checkpoints.owner = "b"
    fixture.setup.publish(1)
    running = await fixture.start()
    await running.ended()

    assert (running.task.result(), fixture.handler.closed, fixture.setup.checkpoint()) == (
        CloseReason.OWNERSHIP_LOST,
        [],
        None,
    )


async def test_the_last_checkpoint_has_an_eighth_of_the_time_even_if_a_call_used_all():
    """The call ignored its cancellation."""
    fixture = PumpFixture()
    running = await fixture.start()
    fixture.handler.call_s, fixture.handler.is_cancellable = 1.5 * SHUTDOWN_S, False
    fixture.setup.publish(1)
    await seconds(1)
    fixture.checkpoints.is_failing = True

    assert (await running.end()) == pytest.approx(1.5 * SHUTDOWN_S - 1 + 0.125 * SHUTDOWN_S)


class BreakingSource(MemoryEventSource):
    """Raises an error that no source should raise, as soon as *is_broken*."""

    is_broken = False

    async def open_receiver(self, consumer_group, partition_id, position):
        """Fail or open."""
        if self.is_broken:
            raise ZeroDivisionError
        return await super().open_receiver(consumer_group, partition_id, position)


@pytest.mark.parametrize("close_s", [0.0, NEVER_S])
async def test_a_pump_that_an_error_ends_raises_it_after_its_last_checkpoint(close_s):
    """``close`` and the checkpoint may use 25 % of ``shutdown_timeout``: no call is under way."""
    fixture = PumpFixture()
    source = fixture.source = BreakingSource(fixture.setup.hub)
    fixture.setup.publish(2)
    running = await fixture.start()
    fixture.checkpoints.is_failing = source.is_broken = True
    fixture.handler.close_s = close_s
    fixture.setup.hub.break_links()
    took_s = await running.ended()

    assert 0.25 * SHUTDOWN_S <= took_s < 0.25 * SHUTDOWN_S + 1
    assert isinstance(running.task.exception(), ZeroDivisionError)
    assert fixture.handler.closed == [CloseReason.HANDLER_FAILED]


@pytest.mark.parametrize("is_lost_in_call", [True, False])
async def test_after_a_loss_nothing_is_stored_while_the_handler_closes(is_lost_in_call):
    """Neither what is due by the policy, nor what ``close`` asks for: another owner continues.

    The store would accept the write: the new owner has not adopted the checkpoint yet.
    """
    policy = CheckpointPolicy(interval=timedelta(seconds=10))
    fixture = PumpFixture(checkpoint_policy=policy)
    fixture.setup.publish(2)
    running = await fixture.start()
    if is_lost_in_call:
        fixture.handler.call_s = NEVER_S
        fixture.setup.publish(1)
        await seconds(1)
    fixture.handler.close_s = 15
    running.pump.lose()
    took_s = await running.ended()

    assert running.task.result() is CloseReason.OWNERSHIP_LOST
    assert fixture.handler.closed == [CloseReason.OWNERSHIP_LOST]
    assert (took_s, running.pump.is_lost) == (12.5, True)
    assert (fixture.setup.numbers(), fixture.setup.checkpointed()) == ([0, 1], None)


async def test_a_partition_that_is_lost_while_it_closes_is_not_written_and_raises_nothing():
    """Whatever it was closed for."""
    fixture = PumpFixture()
    fixture.setup.publish(2)
    running = await fixture.start()
    fixture.handler.close_s = 10
    asyncio.get_running_loop().call_later(5, running.pump.lose)
    await running.end()

    assert (fixture.setup.checkpointed(), running.task.result(), fixture.handler.closed) == (
        None,
        CloseReason.OWNERSHIP_LOST,
        [CloseReason.SHUTDOWN],
    )


@pytest.mark.parametrize("key_concurrency", [1, 3])
async def test_a_partition_that_is_lost_while_its_calls_finish_is_closed_as_lost(key_concurrency):
    """The handler then knows that another processor continues."""
    lost = CloseReason.OWNERSHIP_LOST

    fixture = PumpFixture(key_concurrency=key_concurrency, key_selector=lambda _: 0)
    fixture.handler.call_s = 20
    running = await fixture.start()
    fixture.setup.publish(1)
    await seconds(1)
    asyncio.get_running_loop().call_later(5, running.pump.lose)
    took_s = await running.end()

    assert (took_s, running.task.result(), fixture.handler.closed, fixture.setup.numbers()) == (
        5,
        lost,
        [lost],
        [],
    )


class BrokenLinkSource(MemoryEventSource):
    """Opens links whose ``close`` fails with an error that no source should raise."""

    async def open_receiver(self, consumer_group, partition_id, position):
        """Open such a link."""
        receiver = await super().open_receiver(consumer_group, partition_id, position)

        async def close() -> NoReturn:
            raise ZeroDivisionError

        receiver.close = close  # type: ignore[method-assign]
        return receiver


async def test_no_call_begins_while_the_link_of_a_failed_pump_closes():
    """Events that are queued for its lanes are left to the next pump."""
    fixture = PumpFixture(
        key_concurrency=2,
        key_selector=lambda event: event.sequence_number,
        batch_size_max=1,
    )
    source = fixture.source = SlowLinkSource(fixture.setup.hub)
    fixture.handler.call_s = 3
    running = await fixture.start()
    fixture.setup.publish(9)
    await seconds(1)
    before = len(fixture.handler.called_at_s)
    source.is_broken = True
    fixture.setup.publish(1)
    await running.ended()

    assert (before, len(fixture.handler.called_at_s), type(running.task.exception())) == (
        2,
        2,
        ZeroDivisionError,
    )


class SlowLinkSource(MemoryEventSource):
    """Opens links that take ten seconds to close, and fail as soon as *is_broken*."""

    is_broken = False

    async def open_receiver(self, consumer_group, partition_id, position):
        """Open such a link."""
        receiver = await super().open_receiver(consumer_group, partition_id, position)
        receive = receiver.receive

        async def failing(*, events_max, wait_max):
            received = await receive(events_max=events_max, wait_max=wait_max)
            if self.is_broken:
                raise ZeroDivisionError
            return received

        async def close() -> None:
            await seconds(10)

        receiver.receive, receiver.close = failing, close  # type: ignore[method-assign]
        return receiver


@pytest.mark.parametrize("is_broken", [False, True])
async def test_a_pump_that_ended_leaves_nothing_behind(is_broken):
    """No task, even if closing failed; its context reports no lease and stores nothing more."""
    fixture = PumpFixture(stall_timeout=timedelta(hours=1))
    if is_broken:
        fixture.source = BrokenLinkSource(fixture.setup.hub)
    fixture.setup.publish(2)
    pump = await fixture.pump()
    asyncio.get_running_loop().call_later(5, lambda: pump.end(CloseReason.SHUTDOWN))
    before = asyncio.all_tasks()
    try:
        await pump.run()
    except ZeroDivisionError:
        assert is_broken
    left = asyncio.all_tasks() - before
    context = fixture.handler.context
    assert context is not None
    context.state = b"7"
    with pytest.raises(OwnershipLostError):
        await context.checkpoint()

    assert (left, context.is_owned, fixture.setup.checkpointed()) == (
        set(),
        False,
        None if is_broken else 1,
    )


async def test_an_error_of_the_store_that_is_not_of_this_library_ends_the_pump():
    """A write in the background must not fail in silence."""
    fixture = PumpFixture(checkpoint_policy=CheckpointPolicy(max_events=1))
    running = await fixture.start()
    fixture.checkpoints.is_failing = True
    fixture.checkpoints.write_error = ZeroDivisionError()  # type: ignore[assignment]
    fixture.setup.publish(1)
    await running.ended()

    assert isinstance(running.task.exception(), ZeroDivisionError)
    assert fixture.handler.closed == [CloseReason.HANDLER_FAILED]


@pytest.mark.parametrize("fails", ["adopt", "initialize"])
async def test_a_handler_is_closed_if_its_initialization_has_begun(fails):
    """What it opened before an error or a stop has to be closed; before, there is nothing."""
    closed = [] if fails == "adopt" else [CloseReason.SHUTDOWN]

    fixture = PumpFixture()
    if fails == "adopt":
        fixture.checkpoints.is_failing = True
    else:

        async def initialize(context):
            await seconds(NEVER_S)

        fixture.handler.initialize = initialize  # type: ignore[method-assign]
    running = await fixture.start()
    await running.end()

    assert (running.task.result(), fixture.handler.closed) == (CloseReason.SHUTDOWN, closed)


async def test_the_log_tells_where_a_pump_began_and_how_far_it_came(caplog):
    """The difference at the end is delivered again to the next owner."""
    caplog.set_level("INFO")
    fixture = PumpFixture()
    fixture.setup.publish(3)
    running = await fixture.start()
    fixture.checkpoints.is_failing = True
    await running.end()

    (started,) = events_logged(caplog, "partition_started")
    (stopped,) = events_logged(caplog, "partition_stopped")
    assert started["sequence_number"] is None
    assert (stopped["reason"], stopped["sequence_number"]) == ("shutdown", 2)
    assert stopped["checkpointed_sequence_number"] is None


async def test_the_back_off_of_a_pump_begins_anew_after_it_served_its_partition():
    """Failures of long ago say nothing about the next one."""
    setup = Setup()
    made_at_s: list[float] = []

    class Failing(Noting):
        def __init__(self):
            super().__init__(setup)
            made_at_s.append(asyncio.get_running_loop().time())
            if len(made_at_s) not in {6, 8}:
                raise RuntimeError

    backoff = Backoff(initial=timedelta(seconds=2), maximum=timedelta(seconds=1000))
    async with setup.processor(Failing, handler_backoff=backoff) as processor:
        await seconds(120)
        run = processor._run
        assert run is not None
        run.pumps.lose("0")
        await seconds(120)

    waits_s = [after - before for before, after in pairwise(made_at_s)]

    assert len(waits_s) == 7
    assert waits_s[4] >= 16
    assert waits_s[6] <= 2.5

"""When calls and waits are cancelled: the lease expires or is lost, or the pump ends."""

import asyncio
from datetime import timedelta

import pytest

from eventproc._group.pumps.stop_scope import (
    TRUST_CHECK_MAX_S,
    TRUST_CHECK_MIN_S,
    TRUST_POLL_S,
    StoppedError,
    StopScope,
)
from eventproc.models import CloseReason
from tests.scenarios.group_setup import seconds


class ScopeFixture:
    """A stop scope, and the lease that it watches."""

    def __init__(self, until_s: float = 100.0) -> None:
        self.until_s = until_s
        self.slept_s = 0.0
        """For how long the machine was suspended. Timers do not count that time."""

        self.scope = StopScope(lambda: self.until_s - self._clock())

    def _clock(self) -> float:
        return asyncio.get_running_loop().time() + self.slept_s

    async def call(self, call_s: float = 1000.0) -> float:
        """Make a call of this length; return when it ended, cancelled or not."""
        try:
            async with self.scope.calling():
                await asyncio.sleep(call_s)
        except TimeoutError:
            pass
        return asyncio.get_running_loop().time()


async def test_a_call_is_cancelled_when_its_lease_expires():
    """Later, if the lease is renewed during the call."""
    fixture = ScopeFixture()
    calling = asyncio.create_task(fixture.call())
    await seconds(90)
    fixture.until_s = 150.0

    assert (await calling) == pytest.approx(150.0, abs=0.01)


async def test_a_call_is_cancelled_soon_after_the_machine_was_suspended():
    """Its lease expired meanwhile, but timers set before would fire too late."""
    fixture = ScopeFixture()
    calling = asyncio.create_task(fixture.call())
    await seconds(10)
    fixture.slept_s = 500.0

    assert (await calling) <= 10 + TRUST_CHECK_MAX_S


async def test_a_call_whose_lease_is_renewed_in_time_is_not_cancelled():
    """It lasts longer than the lease that it began with."""
    fixture = ScopeFixture()
    calling = asyncio.create_task(fixture.call(200.0))
    await seconds(50)
    fixture.until_s = 300.0

    assert (await calling) == 200.0


async def test_the_loss_of_the_lease_cancels_calls_and_waits_at_once():
    """The lease is not trusted any more."""
    fixture = ScopeFixture()
    calling = asyncio.create_task(fixture.call())

    async def wait() -> None:
        with fixture.scope.waiting():
            await asyncio.sleep(1000)

    waiting = asyncio.create_task(wait())
    await seconds(5)
    fixture.scope.lose()
    with pytest.raises(StoppedError):
        await waiting

    assert (await calling, fixture.scope.is_trusted) == (5.0, False)


async def test_an_abort_cancels_calls_and_waits_at_once_and_keeps_the_first_reason():
    """An error in a pump that was ending already: it ends for the reason that came first."""
    fixture = ScopeFixture()
    calling = asyncio.create_task(fixture.call())
    await seconds(1)
    fixture.scope.end(CloseReason.HANDED_OVER, call_budget=timedelta(seconds=50))
    await seconds(1)
    fixture.scope.abort(CloseReason.HANDLER_FAILED)
    ended_s, other = await calling, ScopeFixture()

    async def wait() -> None:
        with other.scope.waiting():
            await asyncio.sleep(1000)

    waiting = asyncio.create_task(wait())
    await seconds(1)
    other.scope.abort(CloseReason.STALLED)
    await asyncio.wait([waiting], timeout=9)

    assert (ended_s, fixture.scope.reason, waiting.done() and type(waiting.exception())) == (
        2.0,
        CloseReason.HANDED_OVER,
        StoppedError,
    )


async def test_a_wait_that_others_cancel_while_the_pump_stops_is_cancelled():
    """The one who cancelled it waits for a ``CancelledError``."""
    fixture = ScopeFixture()

    async def wait() -> None:
        with fixture.scope.waiting():
            await asyncio.sleep(1000)

    waiting = asyncio.create_task(wait())
    await seconds(1)
    fixture.scope.abort(CloseReason.STALLED)
    waiting.cancel()
    await asyncio.wait([waiting], timeout=9)

    assert waiting.cancelled()


async def test_a_loss_while_a_cancelled_call_cleans_up_is_noted():
    """The end has cancelled the call before; it is not cancelled a second time."""
    fixture = ScopeFixture()

    async def call() -> None:
        async with fixture.scope.calling():
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                await seconds(5)
                raise

    calling = asyncio.create_task(call())
    await seconds(1)
    fixture.scope.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=1))
    await seconds(3)
    fixture.scope.lose()
    with pytest.raises(TimeoutError):
        await calling

    assert (asyncio.get_running_loop().time(), fixture.scope.is_lost, fixture.scope.is_ending) == (
        7.0,
        True,
        False,
    )


async def test_a_lease_with_no_time_left_is_not_trusted():
    """Its last moment belongs to the next owner."""
    fixture = ScopeFixture(until_s=0.0)

    assert (fixture.scope.is_trusted, fixture.scope.is_waiting_for_trust) == (False, True)


async def test_a_lease_is_not_checked_in_a_busy_loop():
    """A coarse clock may show the same short time left again and again."""
    checks: list[None] = []

    def trusted_for_s():
        checks.append(None)
        return 0.01 * TRUST_CHECK_MIN_S

    scope = StopScope(trusted_for_s)
    async with scope.calling():
        await asyncio.sleep(10 * TRUST_CHECK_MIN_S)

    assert len(checks) <= 30


async def test_an_orderly_end_cancels_a_call_only_after_its_budget():
    """The lease stays trusted meanwhile."""
    fixture = ScopeFixture()
    calling = asyncio.create_task(fixture.call())
    await seconds(5)
    fixture.scope.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=7))

    assert (await calling, fixture.scope.is_trusted) == (12.0, True)


async def test_the_lease_is_not_trusted_after_the_pump_has_finished():
    """Another pump may serve the partition by then."""
    fixture = ScopeFixture()
    before = fixture.scope.is_trusted
    fixture.scope.finish()

    assert (before, fixture.scope.is_trusted) == (True, False)


async def test_a_wait_for_the_lease_is_told_from_a_lease_that_is_trusted():
    """After a wait the caller looks again: the partition may have been paused meanwhile."""
    fixture = ScopeFixture(until_s=0.0)
    waiting = asyncio.create_task(fixture.scope.until_trusted())
    await seconds(TRUST_POLL_S / 2)
    fixture.until_s = 1000.0

    assert (await waiting, await fixture.scope.until_trusted()) == (True, False)


async def test_no_call_begins_after_the_end():
    """The budget is for calls under way; a call that began later would have no limit."""
    fixture = ScopeFixture()
    fixture.scope.end(CloseReason.HANDED_OVER, call_budget=timedelta(seconds=1))
    with pytest.raises(StoppedError):
        await fixture.call()

    assert asyncio.get_running_loop().time() == 0


async def test_no_call_begins_if_the_end_comes_as_the_lease_is_trusted_again():
    """The wait for the lease is over by then, but the end is checked again before the call."""
    fixture = ScopeFixture(until_s=0.0)

    async def regain():
        await fixture.scope.until_trusted()
        await fixture.call()

    waiting = asyncio.create_task(regain())
    await seconds(0.99 * TRUST_POLL_S)
    fixture.until_s = 1000.0
    loop = asyncio.get_running_loop()
    loop.call_later(
        0.01 * TRUST_POLL_S,
        lambda: fixture.scope.end(CloseReason.HANDED_OVER, call_budget=timedelta(seconds=1)),
    )
    await asyncio.wait([waiting], timeout=50)

    assert (waiting.done() and type(waiting.exception())) is StoppedError


async def test_a_call_that_has_ended_is_not_cancelled_later():
    """The last check of its lease comes after it, when the lease is not trusted any more."""
    errors = []
    asyncio.get_running_loop().set_exception_handler(lambda _, found: errors.append(found))
    fixture = ScopeFixture(until_s=TRUST_CHECK_MAX_S * 1.8)
    await fixture.call(TRUST_CHECK_MAX_S * 1.5)
    await seconds(TRUST_CHECK_MAX_S * 5)

    assert errors == []


async def test_a_wait_that_turns_its_cancellation_into_a_timeout_is_stopped():
    """Some clients raise ``TimeoutError`` for every cancellation."""
    fixture = ScopeFixture()

    async def wait() -> None:
        with fixture.scope.waiting():
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                raise TimeoutError from None

    waiting = asyncio.create_task(wait())
    await seconds(5)
    fixture.scope.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=7))
    await asyncio.wait([waiting])

    assert type(waiting.exception()) is StoppedError


async def test_the_first_reason_to_end_stands():
    """A second end changes neither the reason nor the budget of the calls under way."""
    fixture = ScopeFixture()
    calling = asyncio.create_task(fixture.call())
    await seconds(5)
    fixture.scope.end(CloseReason.HANDED_OVER, call_budget=timedelta(seconds=7))
    fixture.scope.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=1))

    assert (await calling, fixture.scope.reason) == (12.0, CloseReason.HANDED_OVER)

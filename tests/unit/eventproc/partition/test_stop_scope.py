"""How a call and a wait are cut: when the lease cannot be trusted, or is lost, or the pump ends."""

import asyncio
from datetime import timedelta

import pytest

from eventproc.models import CloseReason
from eventproc.partition.stop_scope import (
    TRUST_LOOK_S,
    TRUST_POLL_S,
    LeaseDeadline,
    StoppedError,
    StopScope,
)
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Noting, Scene, seconds


class Door:
    """An ending, and the lease that it looks at."""

    def __init__(self, until_s: float = 100.0) -> None:
        self.until_s = until_s
        self.slept_s = 0.0
        """For how long the machine was suspended, of which timers know nothing."""

        self.ending = StopScope(LeaseDeadline(lambda: self.until_s, self._clock))

    def _clock(self) -> float:
        return asyncio.get_running_loop().time() + self.slept_s

    async def call(self, call_s: float = 1000.0) -> float:
        """Make a call; return when it ended, cut or not."""
        try:
            async with self.ending.calling():
                await asyncio.sleep(call_s)
        except TimeoutError:
            pass
        return asyncio.get_running_loop().time()


def test_a_call_is_cut_when_its_lease_ends():
    """And goes on while that is renewed."""

    async def story():
        door = Door()
        calling = asyncio.create_task(door.call())
        await seconds(90)
        door.until_s = 150.0
        return await calling

    assert run_virtual(story()) == pytest.approx(150.0, abs=0.01)


def test_a_call_is_cut_soon_after_the_machine_slept():
    """Its timers would let it go on for as long as the lease had lasted without that."""

    async def story():
        door = Door()
        calling = asyncio.create_task(door.call())
        await seconds(10)
        door.slept_s = 500.0
        return await calling

    assert run_virtual(story()) <= 10 + TRUST_LOOK_S


def test_a_call_that_is_quick_enough_is_not_cut():
    """Its lease is renewed in good time."""

    async def story():
        door = Door()
        calling = asyncio.create_task(door.call(200.0))
        await seconds(50)
        door.until_s = 300.0
        return await calling

    assert run_virtual(story()) == 200.0


def test_a_loss_cuts_calls_and_waits_at_once():
    """What they do is somebody else's business now."""

    async def story():
        door = Door()
        calling = asyncio.create_task(door.call())

        async def wait() -> None:
            async with door.ending.waiting():
                await asyncio.sleep(1000)

        waiting = asyncio.create_task(wait())
        await seconds(5)
        door.ending.lose()
        with pytest.raises(StoppedError):
            await waiting
        return await calling, door.ending.is_trusted

    assert run_virtual(story()) == (5.0, False)


def test_a_good_end_gives_a_call_its_budget():
    """The wait is cut at once."""

    async def story():
        door = Door()
        calling = asyncio.create_task(door.call())
        await seconds(5)
        door.ending.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=7))
        return await calling, door.ending.is_trusted

    assert run_virtual(story()) == (12.0, True)


def test_what_outlives_its_pump_may_trust_nothing():
    """Another pump may serve the partition by then."""

    async def story():
        door = Door()
        before = door.ending.is_trusted
        door.ending.finish()
        return before, door.ending.is_trusted

    assert run_virtual(story()) == (True, False)


def test_nothing_is_handed_over_while_the_lease_cannot_be_trusted():
    """The store is out, so nobody knows who owns the partition; then it goes on."""

    async def story():
        scene = Scene()
        async with scene.processor(lambda: Noting(scene)):
            await seconds(5)
            scene.store_by_owner["a"].is_out = True
            await seconds(100)
            scene.publish(3)
            await seconds(20)
            before = scene.numbers()
            scene.store_by_owner["a"].is_out = False
            await seconds(60)
            after = scene.numbers()
        return before, after

    assert run_virtual(story()) == ([], [0, 1, 2])


def test_no_call_begins_after_the_end_was_told():
    """The time for calls was given to those under way: one that began now would have no limit."""

    async def story():
        door = Door()
        door.ending.end(CloseReason.HANDED_OVER, call_budget=timedelta(seconds=1))
        with pytest.raises(StoppedError):
            await door.call()
        return asyncio.get_running_loop().time()

    assert run_virtual(story()) == 0


def test_an_end_in_the_moment_in_which_trust_returns_begins_no_call():
    """Who waited for the lease is past its wait, and has not looked again."""

    async def story():
        door = Door(until_s=0.0)

        async def regain():
            await door.ending.until_trusted()
            await door.call()

        waiting = asyncio.create_task(regain())
        await seconds(0.99 * TRUST_POLL_S)
        door.until_s = 1000.0
        loop = asyncio.get_running_loop()
        loop.call_later(
            0.01 * TRUST_POLL_S,
            lambda: door.ending.end(CloseReason.HANDED_OVER, call_budget=timedelta(seconds=1)),
        )
        await asyncio.wait([waiting], timeout=50)
        return waiting.done() and type(waiting.exception())

    assert run_virtual(story()) is StoppedError


def test_a_call_that_is_over_is_not_cut_later():
    """Its lease is looked at once more when the call has ended, and is not trusted by then."""

    async def story():
        errors = []
        asyncio.get_running_loop().set_exception_handler(lambda _, found: errors.append(found))
        door = Door(until_s=TRUST_LOOK_S * 1.8)
        await door.call(TRUST_LOOK_S * 1.5)
        await seconds(TRUST_LOOK_S * 5)
        return errors

    assert run_virtual(story()) == []


def test_a_wait_that_answers_its_end_with_a_timeout_is_stopped():
    """As a client does that turns every cancellation into a time-out of its own."""

    async def story():
        door = Door()

        async def wait() -> None:
            async with door.ending.waiting():
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    raise TimeoutError from None

        waiting = asyncio.create_task(wait())
        await seconds(5)
        door.ending.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=7))
        await asyncio.wait([waiting])
        return type(waiting.exception())

    assert run_virtual(story()) is StoppedError

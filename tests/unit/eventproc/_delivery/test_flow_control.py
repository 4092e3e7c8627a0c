"""Pauses and rate limits: how long each of them waits."""

import asyncio
from datetime import timedelta
from math import inf

import pytest

from eventproc._delivery.flow_control import PauseSwitch, RateLimiter
from eventproc._group.pumps.stop_scope import StoppedError, StopScope
from eventproc.models import CloseReason
from tests.scenarios.group_setup import seconds


@pytest.mark.parametrize(("per_second", "most"), [(0.2, 1), (1, 1), (2.9, 2), (100, 100)])
def test_a_batch_has_the_events_of_a_second_and_at_least_one(per_second, most):
    """No source can be asked for zero events, however low the limit is."""
    assert RateLimiter(per_second).batch_max == most


async def test_events_above_the_rate_wait_and_the_limit_remembers_them():
    """The events of the first second do not wait; each later one waits for its share."""
    limiter, stop = RateLimiter(2), StopScope(lambda: inf)
    times = []
    for count in (2, 2, 1, 1):
        await limiter.wait(count, stop)
        times.append(asyncio.get_running_loop().time())

    assert times == [0, 1, 1.5, 2]


async def test_a_stop_ends_the_wait_for_a_rate_at_once():
    """With a low rate it may last for minutes, and the events are not delivered yet."""
    limiter, stop = RateLimiter(0.01), StopScope(lambda: inf)
    await limiter.wait(1, stop)
    asyncio.get_running_loop().call_later(
        5, lambda: stop.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=9))
    )
    with pytest.raises(StoppedError):
        await limiter.wait(1, stop)

    assert asyncio.get_running_loop().time() == 5


@pytest.mark.parametrize(("paused_s", "waited_s"), [(0, 0), (3, 3), (30, 10)])
async def test_a_wait_for_the_end_of_a_pause_may_have_a_limit(paused_s, waited_s):
    """It returns then, and raises nothing: the pause may go on."""
    switch = PauseSwitch()
    if paused_s:
        switch.pause()
        asyncio.get_running_loop().call_later(paused_s, switch.resume)
    await switch.until_open(within_s=10)

    assert (asyncio.get_running_loop().time(), switch.is_paused) == (waited_s, paused_s > waited_s)


async def test_a_wait_for_the_end_of_a_pause_has_no_limit_by_default():
    """Events that were received before the pause wait for as long as it lasts."""
    switch = PauseSwitch()
    switch.pause()
    waiting = asyncio.ensure_future(switch.until_open())
    await seconds(100_000)
    is_over = waiting.done()
    switch.resume()
    await waiting

    assert not is_over

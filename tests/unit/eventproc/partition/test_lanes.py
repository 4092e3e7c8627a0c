"""Key lanes: what their waits wait for, and when they have ended."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from eventproc import EventProcessorConfig
from eventproc.core.progress import PartitionProgress
from eventproc.models import CloseReason
from eventproc.partition.lanes import KeyLanes
from eventproc.pumps.stop_scope import StoppedError, StopScope
from eventproc.testing.virtual_time import run_virtual
from tests.unit.eventproc.core.events import events


class CallsThatIgnoreCancellation:
    """In place of the calls of a user's handler: each lasts a minute, whatever happens."""

    def __init__(self):
        self.ended_at_s = []

    async def deliver(self, events, lane, check):
        """Go on after every cancellation."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + 60
        while (left_s := until_s - loop.time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(left_s)
        self.ended_at_s.append(loop.time())


class CallsOfASecond:
    """In place of the calls of a user's handler: each lasts a second."""

    def __init__(self):
        self.handled = []

    async def deliver(self, events, lane, check):
        """Handle them."""
        await asyncio.sleep(1)
        self.handled += [event.sequence_number for event in events]


def lanes_of(
    calls: Any, *, stop: StopScope | None = None, progress: PartitionProgress | None = None
) -> KeyLanes:
    """Two lanes, with room for four events, in a partition of which only the calls matter."""
    parts: Any = SimpleNamespace(
        of_lane=lambda _: None,
        progress=progress or PartitionProgress(),
        stop=stop or StopScope(lambda: inf),
    )
    config = EventProcessorConfig(
        key_concurrency=2,
        key_selector=lambda event: str(event.sequence_number),
        max_in_flight_events=4,
        batch_size_max=4,
    )
    return KeyLanes(parts, calls, checkpointer=parts, scope=parts, config=config, on_failure=print)


def test_lanes_have_ended_only_when_every_call_has_returned():
    """Also if the wait is cancelled, twice: until then a handler works on the partition."""
    calls = CallsThatIgnoreCancellation()

    async def scenario():
        lanes = lanes_of(calls)
        await lanes.take(events(range(2)))
        ending = asyncio.ensure_future(lanes.end())
        for _ in range(2):
            await asyncio.sleep(1)
            ending.cancel()
        await asyncio.wait([ending])
        return ending.cancelled(), asyncio.get_running_loop().time()

    assert run_virtual(scenario()) == (True, 60)
    assert calls.ended_at_s == [60, 60]


def test_take_until_done_returns_when_all_events_are_done():
    """A lane takes the next key when it is free."""
    calls = CallsOfASecond()

    async def scenario():
        await lanes_of(calls).take_until_done(events(range(4)))
        return asyncio.get_running_loop().time()

    assert run_virtual(scenario()) == 2
    assert calls.handled == [0, 1, 2, 3]


@pytest.mark.parametrize("take", [KeyLanes.take, KeyLanes.take_until_done])
def test_a_stop_ends_the_wait_for_lanes_at_once(take):
    """Whether the lanes are full or have to be done: the calls have a budget, and waits have none.

    No event that is still queued begins after it.
    """
    calls = CallsOfASecond()

    async def scenario():
        stop, progress = StopScope(lambda: inf), PartitionProgress()
        progress.pin(-1, "")
        progress.admit(events(range(4)))
        lanes = lanes_of(calls, stop=stop, progress=progress)
        is_idle = lanes.is_idle
        taking = asyncio.ensure_future(take(lanes, events(range(4))))
        await asyncio.sleep(0.5)
        stop.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=60))
        with pytest.raises(StoppedError):
            await taking
        stopped_at_s = asyncio.get_running_loop().time()
        await lanes.end()
        return is_idle, lanes.room, stopped_at_s

    assert run_virtual(scenario()) == (False, 0, 0.5)
    assert calls.handled == [0, 1]

"""Key lanes: when they have ended."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from eventproc import EventProcessorConfig
from eventproc.core.progress import PartitionProgress
from eventproc.partition.lanes import KeyLanes
from eventproc.testing.virtual_time import run_virtual
from tests.unit.eventproc.core.events import events


class CallsThatIgnoreCancellation:
    """In place of the calls of a user's handler: each lasts a minute, whatever happens."""

    def __init__(self):
        self.ended_at_s = []

    async def hand(self, events, lane, check):
        """Go on after every cancellation."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + 60
        while (left_s := until_s - loop.time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(left_s)
        self.ended_at_s.append(loop.time())


def lanes_of(calls: Any) -> KeyLanes:
    """Two lanes in a partition of which only the calls matter."""
    parts: Any = SimpleNamespace(
        of_lane=lambda _: None, progress=PartitionProgress(), stop=SimpleNamespace(reason=None)
    )
    config = EventProcessorConfig(
        key_concurrency=2, key_selector=lambda event: str(event.sequence_number)
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

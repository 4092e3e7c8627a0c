"""Key lanes: what their waits wait for, which calls they make, and when they have ended."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from eventproc import EventProcessorConfig
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.handler_calls import DONE
from eventproc._delivery.lanes import CALLS_PER_TASK, KeyLanes
from eventproc._group.pumps.stop_scope import StoppedError, StopScope
from eventproc.errors import HandlerCancelledError
from eventproc.models import CloseReason, ReceivedEvent, SequenceRange
from tests.unit.eventproc._core.events import events, numbers


class CallsThatIgnoreCancellation:
    """In place of the calls of a user's handler: each lasts a minute, whatever happens."""

    def __init__(self):
        self.ended_at_s = []

    async def call_once(self, events, lane, check):
        """Go on after every cancellation."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + 60
        while (left_s := until_s - loop.time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(left_s)
        self.ended_at_s.append(loop.time())
        return DONE


class CallsOfASecond:
    """In place of the calls of a user's handler: each lasts a second."""

    def __init__(self):
        self.handled = []

    async def call_once(self, events, lane, check):
        """Handle them."""
        await asyncio.sleep(1)
        self.handled += [event.sequence_number for event in events]
        return DONE


class NotedCalls:
    """In place of the calls of a user's handler: each lasts a second, and its events are done."""

    def __init__(self, progress: PartitionProgress, *, is_done_at_once: bool = False) -> None:
        self.progress = progress
        self.runs: list[tuple[list[int], bool]] = []
        """The events of each call, and whether their keys are checked in it."""

        self._is_done_at_once = is_done_at_once

    async def call_once(self, events, lane, check):
        """Note the call, and that its events are done."""
        self.runs.append((numbers(events), check is not None))
        if not self._is_done_at_once:
            await asyncio.sleep(1)
        self.progress.done(events)
        lane.note_done(len(events))
        if self._is_done_at_once:
            await asyncio.sleep(1)
        return DONE


def own_key(event: ReceivedEvent) -> str:
    """A key for each event."""
    return str(event.sequence_number)


def lanes_of(
    calls: Any,
    *,
    stop: StopScope | None = None,
    progress: PartitionProgress | None = None,
    key_selector: Callable[[ReceivedEvent], Any] = own_key,
    note: Callable[[int], None] = lambda _: None,
    on_failure: Callable[[BaseException], None] = print,
    max_in_flight_events: int = 4,
) -> KeyLanes:
    """Two lanes, with room for four events, in a partition of which only the calls matter."""
    parts: Any = SimpleNamespace(
        of_lane=lambda note_done: SimpleNamespace(
            note_done=note_done,
            busy_since_s=None,
            enter=lambda: None,
            interrupt=lambda: None,
            variables=copy_context(),
        ),
        progress=progress or PartitionProgress(),
        stop=stop or StopScope(lambda: inf),
        note=note,
        busy_since_s=None,
    )
    config = EventProcessorConfig(
        key_concurrency=2,
        key_selector=key_selector,
        max_in_flight_events=max_in_flight_events,
        batch_size_max=4,
    )
    return KeyLanes(
        parts, calls, checkpointer=parts, scope=parts, config=config, on_failure=on_failure
    )


def admitted(count: int) -> PartitionProgress:
    """The progress of a partition that has received so many events, from 0 on."""
    progress = PartitionProgress(has_state=False)
    progress.pin(-1, "")
    progress.admit(events(range(count)))
    return progress


async def test_lanes_have_ended_only_when_every_call_has_returned():
    """Also if the wait is cancelled, twice: until then a handler works on the partition."""
    calls = CallsThatIgnoreCancellation()

    lanes = lanes_of(calls)
    await lanes.take(events(range(2)))
    ending = asyncio.ensure_future(lanes.end())
    for _ in range(2):
        await asyncio.sleep(1)
        ending.cancel()
    await asyncio.wait([ending])

    assert (ending.cancelled(), asyncio.get_running_loop().time()) == (True, 60)
    assert calls.ended_at_s == [60, 60]


async def test_take_until_done_returns_when_all_events_are_done():
    """A lane takes the next key when it is free."""
    calls = CallsOfASecond()

    await lanes_of(calls).take_until_done(events(range(4)))

    assert asyncio.get_running_loop().time() == 2
    assert calls.handled == [0, 1, 2, 3]


@pytest.mark.parametrize("take", [KeyLanes.take, KeyLanes.take_until_done])
async def test_a_stop_ends_the_wait_for_lanes_at_once(take):
    """Whether the lanes are full or have to be done: the calls have a budget, and waits have none.

    No event that is still queued begins after it.
    """
    calls = CallsOfASecond()

    stop, progress = StopScope(lambda: inf), admitted(4)
    lanes = lanes_of(calls, stop=stop, progress=progress)
    is_idle = lanes.is_idle
    taking = asyncio.ensure_future(take(lanes, events(range(4))))
    await asyncio.sleep(0.5)
    stop.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=60))
    with pytest.raises(StoppedError):
        await taking
    stopped_at_s = asyncio.get_running_loop().time()
    await lanes.end()

    assert (is_idle, lanes.room, stopped_at_s) == (False, 0, 0.5)
    assert calls.handled == [0, 1]


async def test_the_wait_for_room_ends_when_a_call_has_made_some():
    """Not when all calls are done; and what is done counts towards the next checkpoint."""
    progress = admitted(4)
    counts: list[int] = []

    await lanes_of(NotedCalls(progress), progress=progress, note=counts.append).take(
        events(range(4))
    )

    assert (asyncio.get_running_loop().time(), sum(counts)) == (1, 2)


async def test_the_wait_for_room_is_for_a_quarter_of_it_while_every_lane_has_work():
    """To receive an event costs more than to handle it, so they are not received one by one."""
    progress = admitted(12)

    lanes = lanes_of(NotedCalls(progress), progress=progress, max_in_flight_events=12)
    await lanes.take(events(range(12)))

    assert (asyncio.get_running_loop().time(), lanes.room) == (2, 4)


async def test_a_lane_without_work_is_not_kept_waiting_for_more_room():
    """The next event may be of a key that has none under way."""
    progress = admitted(12)
    calls = NotedCalls(progress)

    lanes = lanes_of(
        calls,
        progress=progress,
        key_selector=lambda e: e.sequence_number == 0,
        max_in_flight_events=12,
    )
    progress.done(events([10, 11]))
    await lanes.take(events(range(2)))

    assert (asyncio.get_running_loop().time(), lanes.room) == (1, 2)


async def test_a_slow_call_keeps_no_lane_waiting_that_has_become_free():
    """It holds the position back, so no call for another key makes room, but its lane is free."""

    class FirstIsSlow(NotedCalls):
        async def call_once(self, events, lane, check):
            if 0 in numbers(events):
                await asyncio.sleep(60)
            return await super().call_once(events, lane, check)

    progress = admitted(10)
    lanes = lanes_of(
        FirstIsSlow(progress),
        progress=progress,
        key_selector=lambda e: e.sequence_number == 0,
        max_in_flight_events=12,
    )
    await lanes.take(events(range(10)))
    received_again = asyncio.get_running_loop().time(), lanes.room
    await lanes.end()

    assert received_again == (3, 2)


async def test_calls_that_wait_for_nothing_leave_the_event_loop_to_others():
    """A lane that handled all that is queued would hold up the leases of this process."""
    turns: list[None] = []

    class CallsWithoutWait:
        async def call_once(self, events, lane, check):
            turns.append(None)
            return DONE

    progress = admitted(100)
    lanes = lanes_of(CallsWithoutWait(), progress=progress, max_in_flight_events=1000)
    await lanes.take(events(range(100)))
    await asyncio.sleep(0)
    first = len(turns)
    await lanes.end()

    assert (first <= 2 * CALLS_PER_TASK, len(turns)) == (True, 100)


async def test_a_call_has_as_many_events_of_its_key_as_a_batch_may_have():
    """In order, and one call of a key at a time; afterwards its lane is free for more."""
    progress = admitted(7)
    calls = NotedCalls(progress)

    lanes = lanes_of(calls, progress=progress, key_selector=lambda _: "key")
    for batch in (range(6), range(6, 7)):
        await lanes.take_until_done(events(batch))

    assert asyncio.get_running_loop().time() == 3
    assert calls.runs == [([0, 1, 2, 3], False), ([4, 5], False), ([6], False)]


async def test_an_event_whose_key_is_not_known_is_alone_in_a_call_that_asks_for_the_key_again():
    """So the error is a failure of this event. Other events are not asked for theirs twice."""

    def key_of(event: ReceivedEvent) -> Any:
        if event.sequence_number == 1:
            raise KeyError("customer")
        return ["no text"] if event.sequence_number == 2 else "key"

    progress = admitted(4)
    calls = NotedCalls(progress)

    lanes = lanes_of(calls, progress=progress, key_selector=key_of)
    await lanes.take_until_done(events(range(4)))

    assert calls.runs == [([0, 3], False), ([1], True), ([2], True)]


async def test_lanes_are_not_idle_during_a_call_that_has_completed_its_events():
    """It called ``done``, and may work on: ``on_idle`` comes after it."""
    progress = admitted(2)

    lanes = lanes_of(NotedCalls(progress, is_done_at_once=True), progress=progress)
    await lanes.take(events(range(2)))
    await asyncio.sleep(0.5)
    during = lanes.is_idle, progress.unfinished_count
    await lanes.end()

    assert (during, lanes.is_idle) == ((False, 0), True)


@pytest.mark.parametrize(
    ("raised", "is_stopping", "reported"),
    [
        (RuntimeError(), False, [RuntimeError]),
        (asyncio.CancelledError(), False, [HandlerCancelledError]),
        (asyncio.CancelledError(), True, []),
        (StoppedError(), False, []),
    ],
    ids=["error", "cancelled", "cancelled by a stop", "stopped"],
)
async def test_what_ends_a_lane_ends_the_pump_unless_it_is_a_stop(raised, is_stopping, reported):
    """Its events are not done, and no other lane would ever take them."""
    stop = StopScope(lambda: inf)
    failures: list[BaseException] = []

    class FailingCalls:
        async def call_once(self, events, lane, check):
            await asyncio.sleep(1)
            raise raised

    lanes = lanes_of(FailingCalls(), stop=stop, on_failure=failures.append)
    await lanes.take(events(range(1)))
    if is_stopping:
        await asyncio.sleep(0.5)
        stop.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=60))
    await lanes.end()

    assert [type(failure) for failure in failures] == reported


async def test_a_wait_for_the_calls_that_is_cancelled_cancels_them():
    """The time for them is over."""

    class LongCalls:
        async def call_once(self, events, lane, check):
            await asyncio.sleep(1000)

    lanes = lanes_of(LongCalls())
    await lanes.take(events(range(2)))
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            await lanes.end()

    assert asyncio.get_running_loop().time() == 5


async def test_the_slowest_call_is_the_one_that_has_completed_nothing_for_longest():
    """Of all lanes, and of the partition's own calls, such as ``on_idle``."""
    lanes = lanes_of(CallsOfASecond())
    contexts: Any = lanes.contexts
    whole, first, second = contexts
    seen: list[tuple[float | None, int | None]] = [(lanes.busy_since_s, None)]
    for context, since_s in ((first, 5.0), (second, 3.0), (whole, 1.0)):
        context.busy_since_s = since_s
        context.unhandled_range = SequenceRange(int(since_s), 9)
        unhandled = lanes.unhandled_range
        seen.append((lanes.busy_since_s, None if unhandled is None else unhandled.first))

    assert (len(contexts), seen) == (3, [(None, None), (5, 5), (3, 3), (1, 1)])

"""With ``failover_timeout``, a partition that completes nothing goes to another processor."""

import asyncio
import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from eventproc import BlockingPartitionHandler, CloseReason, FailureAction, FailurePolicy
from eventproc.dead_letters import MemoryDeadLetterSink
from tests.scenarios.group_setup import Noting, Setup, seconds, until
from tests.unit.eventproc._delivery.test_handler_threads import SHORT

MINUTE = timedelta(minutes=1)


async def test_a_stalled_receiver_is_given_up_after_its_time():
    """It was reopened before, without success."""
    setup = Setup()
    reasons = []

    class Closing(Noting):
        async def close(self, context, reason):
            reasons.append((reason, round(asyncio.get_running_loop().time() - stalled_s)))

    settings: dict[str, Any] = {"stall_timeout": MINUTE, "failover_timeout": 3 * MINUTE}
    async with setup.processor(lambda: Closing(setup), **settings) as processor:
        setup.publish(3)
        await seconds(5)
        stalled_s = asyncio.get_running_loop().time()
        setup.hub.stall("0")
        setup.publish(3)
        await seconds(170)
        during, none = processor.statistics(), reasons.copy()
        await seconds(40)
    reason, after_s = reasons[0]

    assert (none, during.counters.receiver_error_count) == ([], 1)
    assert reason is CloseReason.STALLED
    assert 175 <= after_s <= 190


async def test_a_call_that_hangs_is_given_up_with_its_partition():
    """Another processor gets the partition. Other partitions are not affected."""
    setup = Setup(partition_count=2)
    reasons, times = [], []

    class Hanging(Noting):
        async def process_events(self, context, events):
            if context.partition_id == "0" and context.owner_id == "a":
                times.append(asyncio.get_running_loop().time())
                await asyncio.Event().wait()
            await super().process_events(context, events)

        async def close(self, context, reason):
            reasons.append((context.owner_id, context.partition_id, reason))
            if reasons[-1][:2] == ("a", "0"):
                times.append(asyncio.get_running_loop().time())

    settings: dict[str, Any] = {"failover_timeout": MINUTE}
    async with setup.processor(lambda: Hanging(setup), **settings) as one:
        setup.publish(2, "1")
        setup.publish(2, "0")
        await seconds(50)
        async with setup.processor(lambda: Hanging(setup), "b", **settings):
            await seconds(3)
            setup.publish(2, "1")
            await seconds(40)
            seen = setup.numbers("1"), setup.numbers("0"), setup.owners(), reasons.copy()
            stalls = one.statistics().counters.stall_count
    (ones, zeros, owners, reasons) = seen

    assert ones == [0, 1, 2, 3]
    assert zeros == [0, 1]
    assert owners["0"] == "b"
    assert ("a", "0", CloseReason.STALLED) in reasons
    assert stalls == 1
    assert 60 <= (times[1] - times[0]) <= 75


async def test_a_stalled_partition_without_another_processor_is_started_again():
    """With a new handler, after a wait."""
    setup = Setup()
    handlers = []

    class HangingOnce(Noting):
        def __init__(self):
            super().__init__(setup)
            handlers.append(self)

        async def process_events(self, context, events):
            if len(handlers) == 1:
                await asyncio.Event().wait()
            await super().process_events(context, events)

    setup.publish(2)
    async with setup.processor(HangingOnce, failover_timeout=MINUTE):
        await seconds(90)

    assert (setup.numbers(), len(handlers)) == ([0, 1], 2)


async def test_an_event_that_hangs_each_time_is_given_up():
    """A stall counts as a delivery without a result."""
    setup = Setup()
    setup.publish(5)
    sink = MemoryDeadLetterSink()

    class Hanging(Noting):
        async def process_events(self, context, events):
            for event in events:
                if event.sequence_number == 3:
                    await asyncio.Event().wait()
                await super().process_events(context, [event])
                context.done(event)

    policy = FailurePolicy(deliveries_max=3, action=FailureAction.DEAD_LETTER)
    async with setup.processor(
        lambda: Hanging(setup), sink=sink, failure_policy=policy, failover_timeout=MINUTE
    ):
        await seconds(600)

    assert (setup.numbers(), [letter.event.sequence_number for letter in sink.letters]) == (
        [0, 1, 2, 4],
        [3],
    )


async def test_one_lane_that_hangs_is_a_stall():
    """Although the other lanes go on."""
    setup = Setup()
    reasons = []

    class OneHangs(Noting):
        async def process_events(self, context, events):
            if events[0].partition_key == "a":
                await asyncio.Event().wait()

        async def close(self, context, reason):
            reasons.append((reason, asyncio.get_running_loop().time()))

    async with setup.processor(lambda: OneHangs(setup), key_concurrency=2, failover_timeout=MINUTE):
        for number in range(80):
            key = "a" if number == 0 else "b"
            setup.hub.publish(b"", partition_id="0", partition_key=key)
            await seconds(1)
    (reason, at_s), *_ = reasons

    assert reason is CloseReason.STALLED
    assert 60 <= at_s <= 75


async def test_on_idle_that_hangs_is_a_stall_with_key_lanes_too():
    """No lane is busy, and none can be until it returns."""
    setup = Setup()
    reasons = []

    class Hanging(Noting):
        async def on_idle(self, context):
            await asyncio.Event().wait()

        async def close(self, context, reason):
            reasons.append(reason)

    async with setup.processor(
        lambda: Hanging(setup),
        key_concurrency=2,
        idle_timeout=timedelta(seconds=10),
        failover_timeout=MINUTE,
    ):
        await seconds(90)

    assert reasons[0] is CloseReason.STALLED


@pytest.mark.real_time
async def test_a_handler_thread_that_hangs_is_left_behind():
    """It cannot be stopped. Its partition goes on with a new handler in a new thread."""
    release = threading.Event()
    handlers: list[BlockingPartitionHandler] = []
    owned: list[tuple[bool, bool]] = []
    begun_s = time.monotonic()

    setup = Setup()

    class Hanging(BlockingPartitionHandler):
        def __init__(self):
            handlers.append(self)

        def process_event(self, context, event):
            if len(handlers) == 1:
                release.wait(30)
                owned.append((context.is_owned, context.is_cancelled))
                return
            setup.handled.append((context.partition_id, event.sequence_number))

    setup.publish(2)
    settings = {**SHORT, "shutdown_timeout": timedelta(seconds=0.5)}
    async with setup.processor(Hanging, failover_timeout=timedelta(seconds=0.3), **settings):
        await until(lambda: len(setup.handled) == 2)
        release.set()
        await until(lambda: owned)

    assert setup.numbers() == [0, 1]
    assert owned == [(False, True)]
    assert time.monotonic() - begun_s < 15

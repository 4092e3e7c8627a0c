"""Stalls are noticed and reported, and end by a new receiver or by giving the partition up."""

import asyncio
import threading
import time
from datetime import timedelta
from typing import Any

from eventproc import (
    BlockingPartitionHandler,
    CloseReason,
    FailureAction,
    FailurePolicy,
    SourceRejectedError,
)
from eventproc.core.stall import Condition, StallStep, stall_step
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Noting, Scene, seconds, until
from tests.unit.eventproc.partition.test_handler_threads import SHORT

MINUTE = timedelta(minutes=1)


def step(*, failover_s: float | None = None, **facts) -> StallStep:
    """The step for these conditions; the others are those of a healthy partition."""
    healthy = {
        "idle_s": 0.0,
        "call_s": None,
        "has_work": True,
        "is_starved": False,
        "is_held_back": False,
        "is_reported": False,
        "was_reopened": False,
    }
    return stall_step(Condition(**{**healthy, **facts}), 60, failover_s)


def test_a_stall_is_reported_once():
    """A call that hangs is one, whatever else the partition does; waiting is none."""
    assert step(idle_s=59, call_s=59) is StallStep.NOTHING
    assert step(idle_s=60) is StallStep.REPORT
    assert step(idle_s=60, is_reported=True) is StallStep.WAIT
    assert step(idle_s=0, call_s=60, is_held_back=True) is StallStep.REPORT
    assert step(idle_s=600, has_work=False) is StallStep.NOTHING
    assert step(idle_s=600, is_held_back=True) is StallStep.NOTHING


def test_the_receiver_is_reopened_once_if_the_partition_waits_for_it():
    """Also if a call that hangs was reported before, and not because of a call alone."""
    assert step(idle_s=60, is_starved=True) is StallStep.REOPEN
    assert step(idle_s=60, is_starved=True, is_reported=True, call_s=90) is StallStep.REOPEN
    assert step(idle_s=90, is_starved=True, was_reopened=True, is_reported=True) is StallStep.WAIT
    assert step(idle_s=10, is_starved=True, call_s=60) is StallStep.REPORT


def test_a_stalled_partition_is_given_up_only_if_there_is_a_time_for_it():
    """The time is that of the last progress, or of the call."""
    assert step(idle_s=9999, call_s=9999) is StallStep.REPORT
    assert step(idle_s=99, is_reported=True, failover_s=100) is StallStep.WAIT
    assert step(idle_s=100, is_reported=True, failover_s=100) is StallStep.GIVE_UP
    assert step(idle_s=0, call_s=100, failover_s=100) is StallStep.GIVE_UP
    assert step(idle_s=100, has_work=False, failover_s=100) is StallStep.NOTHING


def test_a_receiver_that_returns_nothing_is_opened_again():
    """It raised no error, although the hub has events."""

    async def story():
        scene = Scene()
        async with scene.processor(stall_timeout=MINUTE) as processor:
            scene.publish(3)
            await seconds(5)
            scene.hub.stall("0")
            scene.publish(3)
            await seconds(75)
            scene.hub.resume("0")
            during = processor.statistics()
            await seconds(60)
            after = processor.statistics()
        return scene.numbers(), during, after

    numbers, during, after = run_virtual(story())

    assert numbers == list(range(6))
    assert during.pumps[0].is_stalled
    assert (during.counters.stall_count, during.counters.receiver_error_count) == (1, 1)
    assert not after.pumps[0].is_stalled
    assert after.claim_count == 1


def test_an_idle_partition_is_not_stalled():
    """It has no work. Nor is one whose hub is out."""

    async def story():
        scene = Scene()
        async with scene.processor(stall_timeout=MINUTE) as processor:
            scene.publish(3)
            await seconds(1000)
            scene.hub.begin_outage()
            scene.publish(3)
            await seconds(1000)
            scene.hub.end_outage()
            await seconds(60)
            return scene.numbers(), processor.statistics().counters.stall_count

    assert run_virtual(story()) == (list(range(6)), 0)


def test_time_without_events_is_no_part_of_a_stall():
    """The watchdog begins to count anew after each ``stall_timeout`` without events."""

    async def story():
        scene = Scene()
        async with scene.processor(stall_timeout=MINUTE) as processor:
            scene.publish(3)
            await seconds(615)  # just after such a time has ended
            scene.hub.stall("0")
            scene.publish(3)
            await seconds(40)
            early = processor.statistics().counters.stall_count
            await seconds(80)
            return early, processor.statistics().counters.stall_count

    assert run_virtual(story()) == (0, 1)


def test_a_partition_that_completes_nothing_is_reported_and_kept_by_default(caplog):
    """Whether its call hangs or fails again and again: only a setting gives it up. The receiver is
    not reopened, and the log says when the stall ends."""

    async def story():
        scene = Scene(partition_count=2)
        goes_on = asyncio.Event()
        calls = []

        class Stuck(Noting):
            async def process_events(self, context, events):
                calls.append(context.partition_id)
                if context.partition_id == "0":
                    await goes_on.wait()
                elif not goes_on.is_set():
                    raise RuntimeError
                await super().process_events(context, events)

        caplog.set_level("INFO", "eventproc")
        scene.publish(1, "0")
        scene.publish(1, "1")
        async with scene.processor(lambda: Stuck(scene)) as processor:
            await seconds(3600)
            during = processor.statistics()
            goes_on.set()
            await seconds(100)
            return during, processor.statistics(), calls.count("0"), scene.numbers("0")

    during, after, hung_count, numbers = run_virtual(story())
    stalls = [r for r in caplog.records if getattr(r, "event", "").startswith("stall_")]

    assert [pump.is_stalled for pump in (*during.pumps, *after.pumps)] == [True, True, False, False]
    assert (during.counters.stall_count, during.counters.receiver_error_count) == (2, 0)
    assert (hung_count, numbers) == (1, [0])
    assert sorted(r.event for r in stalls) == [*["stall_detected"] * 2, *["stall_recovered"] * 2]
    assert [r.is_reopened for r in stalls[:2]] == [False, False]


def test_a_lane_that_hangs_is_one_stall_while_the_others_go_on():
    """It ends when the call does."""

    async def story():
        scene = Scene()
        goes_on = asyncio.Event()

        class OneHangs(Noting):
            async def process_events(self, context, events):
                if events[0].partition_key == "a":
                    await goes_on.wait()

        async with scene.processor(
            lambda: OneHangs(scene), key_concurrency=2, stall_timeout=MINUTE
        ) as processor:
            for number in range(300):
                scene.hub.publish(b"", partition_id="0", partition_key="b" if number else "a")
                await seconds(1)
            during = processor.statistics()
            goes_on.set()
            await seconds(20)
            return during, processor.statistics()

    during, after = run_virtual(story())

    assert (during.pumps[0].is_stalled, after.pumps[0].is_stalled) == (True, False)
    assert after.counters.stall_count == 1


def test_a_stalled_receiver_is_given_up_after_its_time():
    """It was reopened before, without success."""

    async def story():
        scene = Scene()
        reasons = []

        class Closing(Noting):
            async def close(self, context, reason):
                reasons.append((reason, round(asyncio.get_running_loop().time() - stalled_s)))

        settings: dict[str, Any] = {"stall_timeout": MINUTE, "failover_timeout": 3 * MINUTE}
        async with scene.processor(lambda: Closing(scene), **settings) as processor:
            scene.publish(3)
            await seconds(5)
            stalled_s = asyncio.get_running_loop().time()
            scene.hub.stall("0")
            scene.publish(3)
            await seconds(170)
            during = processor.statistics(), reasons.copy()
            await seconds(40)
            return during, reasons[0]

    (during, none), (reason, after_s) = run_virtual(story())

    assert (none, during.counters.receiver_error_count) == ([], 1)
    assert reason is CloseReason.STALLED
    assert 175 <= after_s <= 190


def test_a_call_that_hangs_is_given_up_with_its_partition():
    """Another processor gets the partition. Other partitions are not affected."""

    async def story():
        scene = Scene(partition_count=2)
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
        async with scene.processor(lambda: Hanging(scene), **settings) as one:
            scene.publish(2, "1")
            scene.publish(2, "0")
            await seconds(50)
            async with scene.processor(lambda: Hanging(scene), "b", **settings):
                await seconds(3)
                scene.publish(2, "1")
                await seconds(40)
                seen = scene.numbers("1"), scene.numbers("0"), scene.owners(), reasons.copy()
                stalls = one.statistics().counters.stall_count
        return seen, stalls, times[1] - times[0]

    (ones, zeros, owners, reasons), stalls, after_s = run_virtual(story())

    assert ones == [0, 1, 2, 3]
    assert zeros == [0, 1]
    assert owners["0"] == "b"
    assert ("a", "0", CloseReason.STALLED) in reasons
    assert stalls == 1
    assert 60 <= after_s <= 75


def test_a_stalled_partition_without_another_processor_is_started_again():
    """With a new handler, after a wait."""

    async def story():
        scene = Scene()
        handlers = []

        class HangingOnce(Noting):
            def __init__(self):
                super().__init__(scene)
                handlers.append(self)

            async def process_events(self, context, events):
                if len(handlers) == 1:
                    await asyncio.Event().wait()
                await super().process_events(context, events)

        scene.publish(2)
        async with scene.processor(HangingOnce, failover_timeout=MINUTE):
            await seconds(90)
        return scene.numbers(), len(handlers)

    assert run_virtual(story()) == ([0, 1], 2)


def test_a_long_call_that_reports_progress_is_not_given_up():
    """A handler that takes events one by one shows progress with each."""

    async def story():
        scene = Scene()

        class Slow(Noting):
            async def process_events(self, context, events):
                for event in events:
                    await asyncio.sleep(30)
                    scene.handled.append(("0", event.sequence_number))
                    context.done(event)

        scene.publish(10)
        async with scene.processor(lambda: Slow(scene), stall_timeout=MINUTE) as processor:
            await seconds(320)
            return scene.numbers(), processor.statistics().counters.stall_count

    assert run_virtual(story()) == (list(range(10)), 0)


def test_an_event_that_hangs_each_time_is_given_up():
    """A stall counts as a delivery without a result."""

    async def story():
        scene = Scene()
        scene.publish(5)
        sink = MemoryDeadLetterSink()

        class Hanging(Noting):
            async def process_events(self, context, events):
                for event in events:
                    if event.sequence_number == 3:
                        await asyncio.Event().wait()
                    await super().process_events(context, [event])
                    context.done(event)

        policy = FailurePolicy(deliveries_max=3, action=FailureAction.DEAD_LETTER)
        async with scene.processor(
            lambda: Hanging(scene), sink=sink, failure_policy=policy, failover_timeout=MINUTE
        ):
            await seconds(600)
        return scene.numbers(), [letter.event.sequence_number for letter in sink.letters]

    assert run_virtual(story()) == ([0, 1, 2, 4], [3])


def test_one_lane_that_hangs_is_a_stall():
    """Although the other lanes go on."""

    async def story():
        scene = Scene()
        reasons = []

        class OneHangs(Noting):
            async def process_events(self, context, events):
                if events[0].partition_key == "a":
                    await asyncio.Event().wait()

            async def close(self, context, reason):
                reasons.append((reason, asyncio.get_running_loop().time()))

        async with scene.processor(
            lambda: OneHangs(scene), key_concurrency=2, failover_timeout=MINUTE
        ):
            for number in range(80):
                key = "a" if number == 0 else "b"
                scene.hub.publish(b"", partition_id="0", partition_key=key)
                await seconds(1)
        return reasons

    (reason, at_s), *_ = run_virtual(story())

    assert reason is CloseReason.STALLED
    assert 60 <= at_s <= 75


def test_on_idle_that_hangs_is_a_stall_with_key_lanes_too():
    """No lane is busy, and none can be until it returns."""

    async def scenario():
        scene = Scene()
        reasons = []

        class Hanging(Noting):
            async def on_idle(self, context):
                await asyncio.Event().wait()

            async def close(self, context, reason):
                reasons.append(reason)

        async with scene.processor(
            lambda: Hanging(scene),
            key_concurrency=2,
            idle_timeout=timedelta(seconds=10),
            failover_timeout=MINUTE,
        ):
            await seconds(90)
        return reasons

    assert run_virtual(scenario())[0] is CloseReason.STALLED


def test_waiting_for_a_rate_limit_is_no_stall():
    """Although the hub has more events, and nothing is completed for longer than the time-out."""

    async def scenario():
        scene = Scene()
        scene.publish(5)
        async with scene.processor(
            partition_rate_max=0.005, batch_size_max=1, stall_timeout=MINUTE
        ) as processor:
            await seconds(450)
            return len(scene.numbers()), processor.statistics().counters.stall_count

    handled_count, stall_count = run_virtual(scenario())

    assert 0 < handled_count < 5
    assert stall_count == 0


def test_a_source_that_rejects_a_partition_is_reported_with_its_error():
    """In ``process_error``. The partition is tried again after a wait."""

    async def story():
        scene = Scene()
        reasons = []

        class Closing(Noting):
            async def close(self, context, reason):
                reasons.append(reason)

        scene.publish(3)
        scene.hub.refuse_opening("0", SourceRejectedError("no right"))
        async with scene.processor(lambda: Closing(scene)):
            await seconds(30)
            reasons_before = list(reasons)
            scene.hub.allow_opening("0")
            await seconds(60)
        return set(reasons_before), scene.numbers(), reasons[-1]

    assert run_virtual(story()) == (
        {CloseReason.SOURCE_FAILED},
        [0, 1, 2],
        CloseReason.SHUTDOWN,
    )


def test_a_handler_thread_that_hangs_is_left_behind():
    """It cannot be stopped. Its partition goes on with a new handler in a new thread."""
    release = threading.Event()
    handlers: list[BlockingPartitionHandler] = []
    owned: list[tuple[bool, bool]] = []

    async def story():
        scene = Scene()

        class Hanging(BlockingPartitionHandler):
            def __init__(self):
                handlers.append(self)

            def process_event(self, context, event):
                if len(handlers) == 1:
                    release.wait(30)
                    owned.append((context.is_owned, context.is_cancelled))
                    return
                scene.handled.append((context.partition_id, event.sequence_number))

        scene.publish(2)
        settings = {**SHORT, "shutdown_timeout": timedelta(seconds=0.5)}
        async with scene.processor(Hanging, failover_timeout=timedelta(seconds=0.3), **settings):
            await until(lambda: len(scene.handled) == 2)
            release.set()
            await until(lambda: owned)
        return scene.numbers()

    begun_s = time.monotonic()

    assert asyncio.run(story()) == [0, 1]
    assert owned == [(False, True)]
    assert time.monotonic() - begun_s < 15

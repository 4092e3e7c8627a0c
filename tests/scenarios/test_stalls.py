"""Stalls are noticed and reported, and end by a new receiver or by themselves."""

import asyncio
import re
from datetime import timedelta

import pytest

from eventproc import (
    CloseReason,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
    SourceRejectedError,
)
from eventproc._core.delivery.stall import Condition, StallStep, stall_step
from tests.scenarios.group_setup import Noting, Setup, seconds

MINUTE = timedelta(minutes=1)


def step(*, failover_s: float | None = None, **facts) -> StallStep:
    """The step for these conditions; the others are those of a healthy partition."""
    healthy = {
        "idle_s": 0.0,
        "call_s": None,
        "has_work": True,
        "is_starved": False,
        "is_held_back": False,
        "failing_s": 0.0,
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
    assert step(failing_s=60, has_work=False) is StallStep.REPORT
    assert step(failing_s=60, has_work=False, is_held_back=True) is StallStep.NOTHING


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
    assert step(idle_s=100, is_reported=True, failover_s=100) is StallStep.ABANDON
    assert step(idle_s=0, call_s=100, failover_s=100) is StallStep.ABANDON
    assert step(idle_s=100, has_work=False, failover_s=100) is StallStep.NOTHING
    assert step(failing_s=999, has_work=False, failover_s=100) is StallStep.REPORT


async def test_a_receiver_that_returns_nothing_is_opened_again():
    """It raised no error, although the hub has events."""
    setup = Setup()
    async with setup.processor(stall_timeout=MINUTE) as processor:
        setup.publish(3)
        await seconds(5)
        setup.hub.stall("0")
        setup.publish(3)
        await seconds(75)
        setup.hub.resume("0")
        during = processor.statistics()
        await seconds(60)
        after = processor.statistics()

    assert setup.numbers() == list(range(6))
    assert during.pumps[0].is_stalled
    assert (during.counters.stall_count, during.counters.receiver_error_count) == (1, 1)
    assert not after.pumps[0].is_stalled
    assert after.claim_count == 1


async def test_a_receiver_is_reopened_in_each_stall():
    """Not only in the first one of a partition."""
    setup = Setup()
    async with setup.processor(stall_timeout=MINUTE) as processor:
        for _ in range(2):
            setup.hub.stall("0")
            setup.publish(3)
            await seconds(75)
            setup.hub.resume("0")
            await seconds(60)
        found = (setup.numbers(), processor.statistics().counters.receiver_error_count)

    assert found == (list(range(6)), 2)


async def test_an_idle_partition_is_not_stalled():
    """It has no work."""
    setup = Setup()
    async with setup.processor(stall_timeout=MINUTE) as processor:
        setup.publish(3)
        await seconds(1000)
        found = (setup.numbers(), processor.statistics().counters.stall_count)

    assert found == (list(range(3)), 0)


async def test_time_without_events_is_no_part_of_a_stall():
    """The watchdog begins to count anew after each ``stall_timeout`` without events."""
    setup = Setup()
    async with setup.processor(stall_timeout=MINUTE) as processor:
        setup.publish(3)
        await seconds(615)  # just after such a time has ended
        setup.hub.stall("0")
        setup.publish(3)
        await seconds(40)
        early = processor.statistics().counters.stall_count
        await seconds(80)
        found = (early, processor.statistics().counters.stall_count)

    assert found == (0, 1)


async def test_a_partition_that_completes_nothing_is_reported_and_kept_by_default(caplog):
    """Whether its call hangs or fails again and again: only a setting gives it up. The receiver is
    not reopened, and the log says when the stall ends."""
    setup = Setup(partition_count=2)
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
    setup.publish(1, "0")
    setup.publish(1, "1")
    async with setup.processor(lambda: Stuck(setup)) as processor:
        await seconds(3600)
        during = processor.statistics()
        goes_on.set()
        await seconds(100)
        after, hung_count, numbers = processor.statistics(), calls.count("0"), setup.numbers("0")

    stalls = [r for r in caplog.records if getattr(r, "event", "").startswith("stall_")]

    assert [pump.is_stalled for pump in (*during.pumps, *after.pumps)] == [True, True, False, False]
    assert (during.counters.stall_count, during.counters.receiver_error_count) == (2, 0)
    assert (hung_count, numbers) == (1, [0])
    assert sorted(r.event for r in stalls) == [*["stall_detected"] * 2, *["stall_recovered"] * 2]
    assert [r.is_reopened for r in stalls[:2]] == [False, False]
    hung, failed = sorted(r.reason for r in stalls[:2])[::-1]
    assert re.fullmatch(r"the handler has not returned for 3\d\d s, called with event 0", hung)
    assert re.fullmatch(
        r"the handler has failed \d+ times in a row for 3\d\d s: RuntimeError\(\)", failed
    )


@pytest.mark.parametrize(
    ("is_batch", "expected"), [(False, (1, 2, 2)), (True, (1, 2, 4))], ids=["event", "batch"]
)
async def test_a_stall_names_the_events_that_hang(caplog, is_batch, expected):
    """The one of ``process_event``; of a batch, the first and the last that is not done."""
    setup = Setup()

    class HangsAt2(Noting):
        async def process_events(self, context, events):
            if not is_batch:
                await PartitionHandler.process_events(self, context, events)
                return
            context.done(events[1])
            await asyncio.Event().wait()

        async def process_event(self, context, event):
            if event.sequence_number == 2:
                await asyncio.Event().wait()

    setup.publish(5)
    processor = setup.processor(
        lambda: HangsAt2(setup),
        stall_timeout=MINUTE,
        failover_timeout=2 * MINUTE,
        shutdown_timeout=timedelta(seconds=1),
    )
    async with processor:
        await seconds(125)

    found = {
        r.event: (r.after_sequence_number, r.sequence_number, r.last_sequence_number)
        for r in caplog.records
        if getattr(r, "event", "") in {"stall_detected", "partition_abandoned"}
    }

    assert found == {"stall_detected": expected, "partition_abandoned": expected}


async def test_a_stall_without_a_call_says_after_which_event(caplog):
    """The receiver returns nothing, and the call of the last event has ended."""
    setup = Setup()

    class Quick(PartitionHandler):
        async def process_event(self, context, event):
            pass

    async with setup.processor(Quick, stall_timeout=MINUTE):
        setup.publish(3)
        await seconds(5)
        setup.hub.stall("0")
        setup.publish(3)
        await seconds(75)

    (stall,) = [r for r in caplog.records if getattr(r, "event", "") == "stall_detected"]

    assert (stall.after_sequence_number, stall.sequence_number) == (2, None)
    assert stall.reason == "the hub has more events, and the receiver returns none"


async def test_a_lane_that_hangs_is_one_stall_while_the_others_go_on(caplog):
    """It names the event that hangs, and ends when the call does."""
    setup = Setup()
    goes_on = asyncio.Event()

    class OneHangs(Noting):
        async def process_events(self, context, events):
            if events[0].partition_key == "a":
                await goes_on.wait()

    async with setup.processor(
        lambda: OneHangs(setup), key_concurrency=2, stall_timeout=MINUTE
    ) as processor:
        for number in range(300):
            setup.hub.publish(b"", partition_id="0", partition_key="b" if number else "a")
            await seconds(1)
        during = processor.statistics()
        goes_on.set()
        await seconds(20)
        after = processor.statistics()

    (stall,) = [r for r in caplog.records if getattr(r, "event", "") == "stall_detected"]

    assert (during.pumps[0].is_stalled, after.pumps[0].is_stalled) == (True, False)
    assert (stall.sequence_number, stall.last_sequence_number) == (0, 0)
    assert during.pumps[0].stalled_sequence_number == 0
    assert after.pumps[0].stalled_sequence_number is None
    assert after.counters.stall_count == 1


async def test_a_long_call_that_reports_progress_is_not_given_up():
    """A handler that takes events one by one shows progress with each."""
    setup = Setup()

    class Slow(Noting):
        async def process_events(self, context, events):
            for event in events:
                await asyncio.sleep(30)
                setup.handled.append(("0", event.sequence_number))
                context.done(event)

    setup.publish(10)
    async with setup.processor(lambda: Slow(setup), stall_timeout=MINUTE) as processor:
        await seconds(320)
        found = (setup.numbers(), processor.statistics().counters.stall_count)

    assert found == (list(range(10)), 0)


async def test_waiting_for_a_rate_limit_is_no_stall():
    """Although the hub has more events, and nothing is completed for longer than the time-out."""
    setup = Setup()
    setup.publish(5)
    async with setup.processor(
        partition_rate_max=0.005, batch_size_max=1, stall_timeout=MINUTE
    ) as processor:
        await seconds(450)
        handled_count, stall_count = (
            len(setup.numbers()),
            processor.statistics().counters.stall_count,
        )

    assert 0 < handled_count < 5
    assert stall_count == 0


async def test_a_source_that_rejects_a_partition_is_reported_with_its_error():
    """In ``process_error``. The partition is tried again after a wait."""
    setup = Setup()
    reasons = []

    class Closing(Noting):
        async def close(self, context, reason):
            reasons.append(reason)

    setup.publish(3)
    setup.hub.refuse_opening("0", SourceRejectedError("no right"))
    async with setup.processor(lambda: Closing(setup)):
        await seconds(30)
        reasons_before = list(reasons)
        setup.hub.allow_opening("0")
        await seconds(60)

    assert (set(reasons_before), setup.numbers(), reasons[-1]) == (
        {CloseReason.SOURCE_FAILED},
        [0, 1, 2],
        CloseReason.SHUTDOWN,
    )


@pytest.mark.parametrize("key_concurrency", [1, 2])
async def test_statistics_say_that_a_handler_fails_until_it_succeeds(key_concurrency):
    """How often, for how long and why; the log says with which event."""
    setup = Setup()
    is_away = True

    class Failing(Noting):
        async def process_events(self, context, events):
            if is_away:
                raise OSError("the disk is full")

    async with setup.processor(
        lambda: Failing(setup), key_concurrency=key_concurrency
    ) as processor:
        setup.hub.publish(b"", partition_id="0", partition_key="a")
        await seconds(30)
        (during,) = processor.statistics().pumps
        is_away = False
        await seconds(60)
        (after,) = processor.statistics().pumps

    assert re.fullmatch(
        r"the handler has failed \d times in a row for \d\d s: OSError\('the disk is full'\)",
        during.handler_error or "",
    )
    assert after.handler_error is None


@pytest.mark.parametrize("key_concurrency", [1, 2])
async def test_a_handler_that_gave_an_event_up_fails_no_more(key_concurrency):
    """Else a later stall would be put down to it."""
    setup = Setup()

    class Choosy(Noting):
        """Fails on one event."""

        async def process_events(self, context, events):
            if events[0].sequence_number == 0:
                raise ValueError("odd")

    policy = FailurePolicy(attempts_max=2, action=FailureAction.SKIP)
    async with setup.processor(
        lambda: Choosy(setup), key_concurrency=key_concurrency, failure_policy=policy
    ) as processor:
        setup.publish(1)
        await seconds(60)
        (pump,) = processor.statistics().pumps

    assert pump.counters.skipped_count == 1
    assert pump.handler_error is None

"""Pauses, rate limits, idle partitions and lag."""

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc import CheckpointPolicy, ConfigurationError, EventProcessorConfig, PartitionHandler
from eventproc._delivery.flow_control import Bucket
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds


def test_a_paused_partition_stays_owned_and_receives_nothing():
    """For longer than the expiration. The others go on, and so does this one when it is resumed."""

    async def scenario():
        setup = Setup(partition_count=2)
        async with setup.processor() as processor:
            for p in ("0", "1"):
                setup.publish(2, p)
            await seconds(5)
            is_known = processor.pause("0"), processor.pause("7")
            for p in ("0", "1"):
                setup.publish(2, p)
            await seconds(200)
            during = setup.numbers("0"), setup.numbers("1"), setup.owners()
            is_paused = [pump.is_paused for pump in processor.statistics().pumps]
            errors = processor.statistics().counters.receiver_error_count
            processor.resume("0")
            await seconds(1)
            after = setup.numbers("0")
        return is_known, during, is_paused, errors, after

    is_known, during, is_paused, errors, after = run_virtual(scenario())

    assert is_known == (True, False)
    assert during == ([0, 1], [0, 1, 2, 3], {"0": "a", "1": "a"})
    assert (is_paused, errors) == ([True, False], 0)
    assert after == [0, 1, 2, 3]


def test_a_handler_may_pause_its_partition():
    """Its call finishes, and no further one begins. The program may resume the partition."""

    async def scenario():
        setup = Setup()

        class Pausing(Noting):
            async def process_events(self, context, events):
                await super().process_events(context, events)
                if events[-1].sequence_number == 1:
                    context.pause()
                    asyncio.get_running_loop().call_later(50, context.resume)

        async with setup.processor(lambda: Pausing(setup)):
            setup.publish(2)
            await seconds(5)
            setup.publish(2)
            await seconds(30)
            during = setup.numbers(), setup.checkpointed()
            await seconds(30)
        return during, setup.numbers()

    assert run_virtual(scenario()) == (([0, 1], 1), [0, 1, 2, 3])


def test_a_pause_ends_with_the_ownership():
    """The next owner does not know of it, and it does not delay a stop."""

    async def scenario():
        setup = Setup()
        async with setup.processor() as processor:
            await seconds(1)
            processor.pause("0")
            setup.publish(2)
            await seconds(20)
        stopped_s = asyncio.get_running_loop().time()
        async with setup.processor(owner_id="b"):
            await seconds(5)
        return setup.numbers(), stopped_s

    numbers, stopped_s = run_virtual(scenario())

    assert numbers == [0, 1]
    assert stopped_s < 26


@pytest.mark.parametrize(
    ("settings", "took_s"),
    [({"partition_rate_max": 10.0}, 9), ({"rate_max": 10.0}, 19)],
    ids=["partition", "processor"],
)
def test_delivery_keeps_the_rate_limits(settings, took_s):
    """Two partitions of a hundred events each; one second's worth may be delivered at once."""

    async def scenario():
        setup = Setup(partition_count=2)
        times = []

        class Timing(Noting):
            async def process_events(self, context, events):
                times.extend([asyncio.get_running_loop().time()] * len(events))

        async with setup.processor(lambda: Timing(setup), **settings):
            await seconds(5)
            for p in ("0", "1"):
                setup.publish(100, p)
            await seconds(60)
        return times

    times = run_virtual(scenario())

    assert len(times) == 200
    assert times[-1] - times[0] == pytest.approx(took_s, abs=1.1)


@given(
    st.floats(0.5, 1000),
    st.lists(st.tuples(st.floats(0, 5), st.integers(1, 50)), min_size=1, max_size=40),
)
def test_no_span_of_time_has_more_events_than_the_rate_allows(per_second, steps):
    """Between any two deliveries: the rate, one second's worth and one batch."""
    bucket, now_s, gone = Bucket(per_second=per_second), 0.0, []
    for after_s, count in steps:
        now_s += after_s
        wait_s, bucket = bucket.take(count, now_s)
        now_s += wait_s
        gone.append((now_s, count))
    for first in range(len(gone)):
        for last in range(first, len(gone)):
            span_s = gone[last][0] - gone[first][0]
            count = sum(c for _, c in gone[first : last + 1])

            assert count <= (span_s + 1) * per_second + 50 + 1e-6 * count


def test_on_idle_is_called_each_time_the_idle_timeout_has_passed():
    """A state that it sets is stored."""

    async def scenario():
        setup = Setup()
        idle = []

        class Idle(Noting):
            async def on_idle(self, context):
                idle.append(asyncio.get_running_loop().time())
                context.state = str(len(idle)).encode()

        async with setup.processor(lambda: Idle(setup), idle_timeout=timedelta(seconds=10)):
            for _ in range(5):
                setup.publish(1)
                await seconds(7)
            busy = len(idle)
            await seconds(40)
        return busy, [later - earlier for earlier, later in pairwise(idle)], setup.checkpoint()

    busy, waits, checkpoint = run_virtual(scenario())

    assert busy == 0
    assert waits == pytest.approx([10] * len(waits), abs=0.1)
    assert len(waits) >= 2
    assert checkpoint.state == str(len(waits) + 1).encode()


def test_a_state_that_on_idle_sets_is_stored_when_the_policy_says_so():
    """It does not wait for the next event, or for the close."""

    async def scenario():
        setup = Setup()

        class Idle(Noting):
            async def on_idle(self, context):
                context.state = b"idle"

        setup.publish(1)
        async with setup.processor(
            lambda: Idle(setup),
            idle_timeout=timedelta(seconds=10),
            checkpoint_policy=CheckpointPolicy(interval=timedelta(seconds=5)),
        ):
            await seconds(18)
            return setup.checkpoint()

    checkpoint = run_virtual(scenario())

    assert (checkpoint.sequence_number, checkpoint.state) == (0, b"idle")


def test_on_idle_is_not_called_while_a_key_lane_is_busy():
    """The partition has work, although nothing was received for a while."""

    async def scenario():
        setup = Setup()
        calls = []

        class Slow(Noting):
            async def process_events(self, context, events):
                await asyncio.sleep(60)
                calls.append("done")

            async def on_idle(self, context):
                calls.append("idle")

        setup.publish(1)
        async with setup.processor(
            lambda: Slow(setup), idle_timeout=timedelta(seconds=10), key_concurrency=2
        ):
            await seconds(85)
        return calls

    assert run_virtual(scenario())[:2] == ["done", "idle"]


def test_lag_is_reported_in_events_and_in_seconds():
    """By the hub's clock: how much older the last handled event is than the newest."""

    async def scenario():
        setup = Setup()
        lags = []

        class Slow(Noting):
            async def process_event(self, context, event):
                await asyncio.sleep(100)
                lags.append((context.lag, context.lag_seconds))

            process_events = PartitionHandler.process_events

        async with setup.processor(lambda: Slow(setup)) as processor:
            before = processor.statistics().lag_seconds
            for _ in range(4):
                setup.publish(1)
                await seconds(10)
            await seconds(85)
            during = processor.statistics().lag, processor.statistics().lag_seconds
            await seconds(400)
            after = processor.statistics().lag, processor.statistics().lag_seconds
        return before, lags, during, after

    before, lags, during, after = run_virtual(scenario())

    assert before == 0.0
    assert lags[0] == (None, None)
    assert during == (3, 30.0)
    assert after == (0, 0.0)


def test_the_lag_grows_during_a_pause():
    """In events and in seconds; it is not known while the hub does not answer."""

    async def scenario():
        setup = Setup()
        lags = []

        def note():
            lags.append((processor.statistics().lag, processor.statistics().lag_seconds))

        async with setup.processor() as processor:
            setup.publish(1)
            await seconds(5)
            processor.pause("0")
            note()
            await seconds(20)
            setup.publish(3)
            await seconds(15)
            note()
            setup.hub.begin_outage()
            await seconds(15)
            note()
            setup.hub.end_outage()
            await seconds(15)
            note()
            processor.resume("0")
            await seconds(5)
            note()
        return lags, setup.numbers()

    lags, numbers = run_virtual(scenario())

    assert lags == [(0, 0.0), (3, 25.0), (None, None), (3, 25.0), (0, 0.0)]
    assert numbers == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"key_concurrency": 0},
        {"max_in_flight_events": 0},
        {"max_in_flight_events": 5000},
        {"rate_max": 0},
        {"partition_rate_max": float("nan")},
        {"stall_timeout": timedelta(0)},
        {"idle_timeout": timedelta(seconds=-1)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_settings_that_cannot_work_are_refused(wrong):
    """With the value and the remedy."""
    with pytest.raises(ConfigurationError, match="give"):
        EventProcessorConfig(**wrong)


def test_a_pause_by_the_handler_outlasts_its_pump():
    """The partition stalled in the call that paused it, and is served again after a back-off."""

    async def scenario():
        setup, calls = Setup(), []

        class PausingAndHanging(PartitionHandler):
            async def process_events(self, context, events):
                calls.append(len(events))
                context.pause()
                await asyncio.Event().wait()

        setup.publish(1)
        async with setup.processor(
            PausingAndHanging, failover_timeout=timedelta(seconds=10)
        ) as processor:
            await seconds(200)
            (pump,) = processor.statistics().pumps
        return calls, pump.is_paused

    assert run_virtual(scenario()) == ([1], True)

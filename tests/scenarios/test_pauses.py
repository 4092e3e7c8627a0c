"""Pauses, rate limits, idle partitions and lag."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc import CheckpointPolicy, ConfigurationError, EventProcessorConfig, PartitionHandler
from eventproc._delivery.flow_control import Bucket
from tests.scenarios.group_setup import Noting, Setup, seconds


async def test_a_paused_partition_stays_owned_and_receives_nothing():
    """For longer than the expiration. The others go on, and so does this one when it is resumed."""
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

    assert is_known == (True, False)
    assert during == ([0, 1], [0, 1, 2, 3], {"0": "a", "1": "a"})
    assert (is_paused, errors) == ([True, False], 0)
    assert after == [0, 1, 2, 3]


async def test_a_handler_may_pause_its_partition():
    """Its call finishes, and no further one begins. The program may resume the partition."""
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

    assert (during, setup.numbers()) == (([0, 1], 1), [0, 1, 2, 3])


async def test_a_pause_ends_with_the_ownership():
    """The next owner does not know of it, and it does not delay a stop."""
    setup = Setup()
    async with setup.processor() as processor:
        await seconds(1)
        processor.pause("0")
        setup.publish(2)
        await seconds(20)
    stopped_s = asyncio.get_running_loop().time()
    async with setup.processor(owner_id="b"):
        await seconds(5)

    assert setup.numbers() == [0, 1]
    assert stopped_s < 26


@pytest.mark.parametrize(
    ("settings", "took_s"),
    [({"partition_rate_max": 10.0}, 9), ({"rate_max": 10.0}, 19)],
    ids=["partition", "processor"],
)
async def test_delivery_keeps_the_rate_limits(settings, took_s):
    """Two partitions of a hundred events each; one second's worth may be delivered at once."""
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


async def test_a_state_that_on_idle_sets_is_stored_when_the_policy_says_so():
    """It does not wait for the next event, or for the close."""
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
        checkpoint = setup.checkpoint()

    assert (checkpoint.sequence_number, checkpoint.state) == (0, b"idle")


async def test_lag_is_reported_in_events_and_in_seconds():
    """By the hub's clock: how much older the last handled event is than the newest."""
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

    assert before == 0.0
    assert lags[0] == (None, None)
    assert during == (3, 30.0)
    assert after == (0, 0.0)


async def test_the_lag_grows_during_a_pause():
    """In events and in seconds; it is not known while the hub does not answer."""
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

    assert lags == [(0, 0.0), (3, 25.0), (None, None), (3, 25.0), (0, 0.0)]
    assert setup.numbers() == [0, 1, 2, 3]


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


async def test_a_pause_by_the_handler_outlasts_its_pump():
    """The partition stalled in the call that paused it, and is served again after a back-off."""
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

    assert (calls, pump.is_paused) == ([1], True)

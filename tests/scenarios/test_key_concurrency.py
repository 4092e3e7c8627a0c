"""Key lanes: keys concurrently, each in order, and no handled event delivered again."""

import asyncio
from collections import Counter, defaultdict
from datetime import timedelta

import pytest

from eventproc import (
    CheckpointPolicy,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
    StateRefusedError,
)
from eventproc.models import OwnershipClaim, SequenceRange
from tests.scenarios.group_setup import Noting, Setup, seconds

MANUAL = CheckpointPolicy.manual()


def publish(setup: Setup, keys) -> None:
    """Publish one event for each key, to one partition."""
    for key in keys:
        setup.hub.publish(key.encode(), partition_id="0", partition_key=key)


class ByKey(PartitionHandler):
    """Takes time for each event, and counts the calls under way."""

    def __init__(self, setup: Setup, seconds_per_event: float = 1.0) -> None:
        self.setup = setup
        self.seconds_per_event = seconds_per_event
        self.busy: Counter[str | None] = Counter()
        self.most = 0
        self.numbers_by_key: dict[str | None, list[int]] = defaultdict(list)

    async def process_events(self, context, events):
        """Handle events of one key."""
        (key,) = {event.partition_key for event in events}
        assert not self.busy[key]
        self.busy[key] += 1
        self.most = max(self.most, self.busy.total())
        try:
            for event in events:
                await asyncio.sleep(self.seconds_per_event)
                self.numbers_by_key[key].append(event.sequence_number)
                self.setup.handled.append(("0", event.sequence_number))
                context.done(event)
        finally:
            self.busy[key] -= 1


@pytest.mark.parametrize(("lanes", "took_s"), [(2, 40), (3, 20), (30, 20)])
async def test_keys_are_handled_concurrently_and_each_in_order(lanes, took_s):
    """As many as there are lanes or keys, whichever is fewer."""
    setup = Setup()
    publish(setup, "abc" * 20)
    handler = ByKey(setup)
    async with setup.processor(lambda: handler, key_concurrency=lanes) as processor:
        started_s = asyncio.get_running_loop().time()
        while processor.statistics().counters.handled_count < 60:
            await seconds(0.25)
        took = asyncio.get_running_loop().time() - started_s

    assert took_s <= took <= took_s + 1
    assert setup.checkpointed() == 59
    assert handler.most == min(lanes, 3)
    for numbers in handler.numbers_by_key.values():
        assert numbers == sorted(numbers)
        assert len(numbers) == 20


async def test_after_a_crash_only_events_under_way_are_delivered_again():
    """Completed events above the position are in the checkpoint."""
    setup = Setup()
    publish(setup, "abbbcb")

    class SlowA(ByKey):
        async def process_events(self, context, events):
            if events[0].partition_key == "a":
                await asyncio.sleep(1000)
            await super().process_events(context, events)

    first = setup.processor(lambda: SlowA(setup), key_concurrency=3)
    await first.start()
    await seconds(20)
    stored = setup.checkpoint()
    setup.store_by_owner["a"].is_out = True  # From now on it is as good as dead.
    handled_before = sorted(setup.numbers())
    async with setup.processor(lambda: ByKey(setup), owner_id="b", key_concurrency=3):
        await seconds(100)
        publish(setup, "b")
        await seconds(10)
    await first.stop()

    assert (stored.sequence_number, stored.completed) == (-1, (SequenceRange(1, 5),))
    assert handled_before == [1, 2, 3, 4, 5]
    assert sorted(setup.numbers()) == [0, 1, 2, 3, 4, 5, 6]
    assert setup.checkpoint().completed == ()
    assert setup.checkpointed() == 6


async def test_a_hand_over_with_key_lanes_repeats_no_event():
    """Every lane finishes its call before the partition is handed over."""
    setup = Setup(partition_count=2)
    for number in range(400):
        key = f"k{number % 7}"
        setup.hub.publish(b"", partition_id=str(number % 2), partition_key=key)

    class Plain(Noting):
        async def process_event(self, context, event):
            await asyncio.sleep(0.3)
            setup.handled.append((context.partition_id, event.sequence_number))

        process_events = PartitionHandler.process_events

    async with setup.processor(lambda: Plain(setup), key_concurrency=4, batch_size_max=5):
        await seconds(10)
        async with setup.processor(
            lambda: Plain(setup), owner_id="b", key_concurrency=4, batch_size_max=5
        ):
            await seconds(60)
    counts = Counter(setup.handled)

    assert len(counts) == 400
    assert set(counts.values()) == {1}


async def test_a_full_window_holds_up_only_its_own_partition():
    """A key that hangs fills the window of one partition; the other one goes on."""
    setup = Setup(partition_count=2)
    for number in range(100):
        for partition_id in ("0", "1"):
            key = "slow" if number == 0 and partition_id == "0" else f"k{number % 5}"
            setup.hub.publish(b"", partition_id=partition_id, partition_key=key)

    class SlowKey(Noting):
        async def process_events(self, context, events):
            if events[0].partition_key == "slow":
                await asyncio.sleep(100)
            await super().process_events(context, events)

    async with setup.processor(
        lambda: SlowKey(setup), key_concurrency=3, max_in_flight_events=10
    ) as one:
        await seconds(50)
        received = [pump.counters.received_count for pump in one.statistics().pumps]
        others = len(setup.numbers("1"))
        await seconds(60)

    assert received == [10, 100]
    assert others == 100
    assert sorted(setup.numbers("0")) == list(range(100))


async def test_a_failing_key_does_not_hold_up_the_others():
    """Its event is retried in its lane, and its later events wait."""
    setup = Setup()
    publish(setup, "abab" * 5)
    failures: list[int] = []

    class FailingA(Noting):
        async def process_event(self, context, event):
            if event.sequence_number == 0 and len(failures) < 10:
                failures.append(len(setup.handled))
                raise RuntimeError
            setup.handled.append(("0", event.sequence_number))

        process_events = PartitionHandler.process_events

    async with setup.processor(lambda: FailingA(setup), key_concurrency=2):
        await seconds(300)
    numbers = setup.numbers()

    assert failures[-1] == 10
    assert numbers[:10] == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]
    assert numbers[10:] == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]


async def test_events_without_a_key_are_handled_as_one_key():
    """With ``key_selector`` they may be handled without order."""
    setup = Setup()
    setup.publish(10)
    handler = ByKey(setup)
    async with setup.processor(lambda: handler, key_concurrency=5):
        await seconds(30)

    assert (handler.most, setup.numbers()) == (1, list(range(10)))


async def test_key_selector_chooses_the_key():
    """Here each event has one of its own, so there is no order."""
    setup = Setup()
    setup.publish(10)
    began_s = []

    class All(Noting):
        async def process_events(self, context, events):
            began_s.append(asyncio.get_running_loop().time())
            await asyncio.sleep(10)
            await super().process_events(context, events)

    async with setup.processor(
        lambda: All(setup),
        key_concurrency=10,
        key_selector=lambda event: str(event.sequence_number),
    ):
        await seconds(15)

    assert (len(began_s), max(began_s) - min(began_s)) == (10, 0)


async def test_setting_state_is_refused_with_key_lanes():
    """It would belong to no position. The call raises even if the start could not see it, and no
    event is given up for it: none is at fault."""
    setup = Setup()
    errors = []

    class Stateful(Noting):
        async def process_events(self, context, events):
            setattr(context, "state", b"1")  # noqa: B010 - in a way that the start cannot see

        async def process_error(self, context, error):
            errors.append(error)

    publish(setup, "a")
    policy = FailurePolicy(attempts_max=1, action=FailureAction.SKIP)
    async with setup.processor(
        lambda: Stateful(setup), key_concurrency=2, failure_policy=policy
    ) as processor:
        await seconds(10)
        skipped = processor.statistics().counters.skipped_count

    assert [type(error) for error in errors[:2]] == [StateRefusedError] * 2
    assert skipped == 0
    assert "key_concurrency to 1" in str(errors[0])


async def test_a_checkpoint_in_a_lane_stores_its_events_as_a_completed_range():
    """The event and those before it in the call are handled, wherever the position is."""
    setup = Setup()
    publish(setup, "abb")
    stored = []

    class Explicit(Noting):
        async def process_events(self, context, events):
            if events[0].partition_key == "a":
                await asyncio.sleep(10)
            else:
                await context.checkpoint(events[1])
                stored.append(setup.checkpoint())

    async with setup.processor(
        lambda: Explicit(setup), key_concurrency=2, checkpoint_policy=MANUAL
    ):
        await seconds(5)
    stored = stored[0]

    assert (stored.sequence_number, stored.completed) == (-1, (SequenceRange(1, 2),))


async def test_losing_the_partition_cancels_the_calls_of_all_lanes():
    """And nothing is stored."""
    setup = Setup()
    publish(setup, "abc")
    ended = []

    class Long(Noting):
        async def process_events(self, context, events):
            try:
                await asyncio.sleep(1000)
            finally:
                ended.append((asyncio.get_running_loop().time(), context.is_owned))

    async with setup.processor(lambda: Long(setup), key_concurrency=3):
        await seconds(5)
        store = setup.store_by_owner["a"].store
        (record,) = (await store.list_ownership(setup.group)).ownerships
        claim = OwnershipClaim(partition_id="0", owner_id="thief", expected_etag=record.etag)
        await store.claim_ownership(setup.group, [claim])
        await seconds(12)

    assert len(ended) == 3
    assert {is_owned for _, is_owned in ended} == {False}
    assert max(at_s for at_s, _ in ended) < 16


async def test_all_lanes_share_the_time_limit_of_stop():
    """Calls that never end are cancelled."""
    setup = Setup()
    publish(setup, "abcd")

    class Endless(Noting):
        async def process_events(self, context, events):
            await asyncio.sleep(3600)

    processor = setup.processor(
        lambda: Endless(setup), key_concurrency=4, shutdown_timeout=timedelta(seconds=10)
    )
    await processor.start()
    await seconds(5)
    started_s = asyncio.get_running_loop().time()
    await processor.stop()

    assert (asyncio.get_running_loop().time() - started_s) <= 10
    assert setup.owners() == {"0": None}

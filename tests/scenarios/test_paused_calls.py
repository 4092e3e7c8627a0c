"""What an operator's pause means for calls of the handler, and for what was received before it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from eventproc import Backoff, CloseReason, FailureAction, FailurePolicy
from eventproc.errors import StoreUnavailableError
from eventproc.models import ClaimResult, WriteOutcome
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.scenarios.pausing import POLLED_S, pause, resume


async def test_a_resume_ends_the_pause_of_a_pump_that_was_made_anew_meanwhile():
    """The pause of the group is not taken for one of the process, which would go on."""
    setup, hangs, closed = Setup(), asyncio.Event(), []

    class Hanging(Noting):
        async def process_events(self, context, events):
            if not hangs.is_set():
                hangs.set()
                await asyncio.Event().wait()
            await super().process_events(context, events)

        async def close(self, context, reason):
            closed.append(reason)

    setup.publish(1)
    async with setup.processor(lambda: Hanging(setup), failover_timeout=timedelta(seconds=60)):
        await hangs.wait()
        await pause(setup)
        await seconds(200)
        during = setup.numbers(), list(closed)
        await resume(setup)
        await seconds(POLLED_S)

    assert (during, setup.numbers()) == (([], [CloseReason.STALLED]), [0])


async def test_a_call_under_way_finishes_and_its_checkpoint_is_stored():
    """The pause begins after it: nothing is delivered twice because of a pause."""
    setup = Setup()

    class Slow(Noting):
        async def process_events(self, context, events):
            await seconds(40)
            await super().process_events(context, events)

    async with setup.processor(lambda: Slow(setup), batch_size_max=1):
        setup.publish(3)
        await seconds(5)
        await pause(setup)
        await seconds(100)
        during = setup.numbers(), setup.checkpointed()
        await resume(setup)
        await seconds(150)

    assert (during, setup.numbers()) == (([0], 0), [0, 1, 2])


@pytest.mark.parametrize("lane_count", [1, 2])
async def test_a_call_that_failed_is_repeated_only_after_the_pause(lane_count):
    """An event is not given up because its handler failed while the system behind it moved.

    Events that wait for their lane wait for the end of the pause, too.
    """
    setup, calls, is_broken = Setup(), [], asyncio.Event()

    class Failing(Noting):
        async def process_events(self, context, events):
            calls.append([event.sequence_number for event in events])
            await seconds(1)
            if is_broken.is_set():
                raise RuntimeError("the system behind the handler is away")
            await super().process_events(context, events)

    policy = FailurePolicy(attempts_max=5, action=FailureAction.SKIP)
    async with setup.processor(
        lambda: Failing(setup),
        failure_policy=policy,
        batch_size_max=1,
        key_concurrency=lane_count,
        key_selector=lambda _: "one key",
        handler_backoff=Backoff(initial=timedelta(seconds=20), maximum=timedelta(seconds=20)),
        stall_timeout=timedelta(seconds=30),
    ) as processor:
        is_broken.set()
        setup.publish(3)
        await seconds(5)
        await pause(setup)
        await seconds(POLLED_S)
        before = len(calls)
        await seconds(500)
        during, (pump,) = len(calls) - before, processor.statistics().pumps
        is_broken.clear()
        await resume(setup)
        await seconds(60)

    assert before >= 1
    assert (during, pump.is_stalled) == (0, False)
    assert setup.numbers() == [0, 1, 2]


async def test_a_processor_that_starts_in_a_paused_group_is_ready():
    """Its handlers are initialized: only events are held back."""
    setup, initialized = Setup(), []

    class Initialized(Noting):
        async def initialize(self, context):
            initialized.append(context.partition_id)

    await pause(setup)
    setup.publish(1)
    async with setup.processor(lambda: Initialized(setup)) as processor:
        await seconds(POLLED_S)
        (pump,) = processor.statistics().pumps

    assert (initialized, pump.is_served, pump.is_paused, setup.numbers()) == (["0"], True, True, [])


async def test_a_partition_with_events_that_wait_for_the_end_of_a_pause_is_handed_over_at_once():
    """They are delivered once, by the next owner, after the pause."""
    setup = Setup()

    class Failing(Noting):
        async def process_events(self, context, events):
            raise RuntimeError("the system behind the handler is away")

    async with setup.processor(lambda: Failing(setup)) as processor:
        setup.publish(2)
        await seconds(5)
        await pause(setup)
        await seconds(POLLED_S)
        async with setup.processor(owner_id="b"):
            began_s = asyncio.get_running_loop().time()
            await processor.stop()
            took_s = asyncio.get_running_loop().time() - began_s
            await seconds(30)
            during = setup.owners(), setup.numbers()
            await resume(setup)
            await seconds(POLLED_S)
            after = setup.numbers()

    assert took_s < POLLED_S
    assert during == ({"0": "b"}, [])
    assert after == [0, 1]


async def test_a_pause_that_began_while_the_lease_was_not_trusted_is_kept():
    """An event that waited for the renewal of the lease waits for the end of the pause then."""
    setup = Setup()
    async with setup.processor() as processor:
        await seconds(5)
        store: Any = setup.store_by_owner["a"]
        claim_ownership = store.claim_ownership

        async def no_answer(_, claims):
            error = StoreUnavailableError("no answer")
            unknown = WriteOutcome.UNKNOWN
            return [ClaimResult(claim=c, outcome=unknown, error=error) for c in claims]

        store.claim_ownership = no_answer
        while processor.statistics().pumps[0].is_trusted:
            await seconds(1)
        setup.publish(1)
        await seconds(1)
        await pause(setup)
        await seconds(POLLED_S)
        store.claim_ownership = claim_ownership
        await seconds(60)
        (pump,) = processor.statistics().pumps
        during = pump.is_trusted, setup.numbers()
        await resume(setup)
        await seconds(POLLED_S)

    assert (during, setup.numbers()) == ((True, []), [0])


async def test_a_pause_is_followed_although_the_rest_of_the_cycle_fails():
    """The record was read; that ownership records cannot be read is another matter."""
    setup = Setup()
    async with setup.processor() as processor:
        await seconds(5)
        store: Any = setup.store_by_owner["a"]

        async def no_answer(_):
            raise StoreUnavailableError("no answer")

        store.list_ownership = no_answer
        await pause(setup)
        await seconds(POLLED_S)
        setup.publish(1)
        await seconds(10)
        assert processor.statistics().store_error == "no answer"

    assert setup.numbers() == []


async def test_a_processor_that_leaves_follows_a_pause():
    """It serves its partitions until others have noticed, but not those that are paused now."""
    setup = Setup(partition_count=2)
    async with setup.processor(owner_id="b"), setup.processor(owner_id="a") as leaving:
        await seconds(60)
        (partition_id,) = leaving.statistics().owned
        await pause(setup, partition_id)
        stopping = asyncio.create_task(leaving.stop())
        await seconds(1)
        setup.publish(1, partition_id)
        await stopping

    assert [number for _, number in setup.handled] == []

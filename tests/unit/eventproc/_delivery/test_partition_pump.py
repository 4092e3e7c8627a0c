"""One pump: when it stores progress, where it begins, what it survives, how it loses ownership."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from eventproc import (
    CheckpointPolicy,
    CloseReason,
    EventPosition,
    OwnershipLostError,
    StoreUnavailableError,
)
from eventproc.models import CheckpointUpdate, OwnershipClaim
from eventproc.testing import StoreFaults
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.unit.eventproc._delivery.pump_fixture import PumpFixture, RunningPump

MANUAL = CheckpointPolicy.manual()


@pytest.mark.parametrize(
    ("policy", "after_s", "expected"),
    [
        (CheckpointPolicy(max_events=2, interval=None), 1, 3),
        (CheckpointPolicy(max_events=100, interval=None), 60, None),
        (CheckpointPolicy(max_events=100, interval=timedelta(seconds=5)), 4, None),
        (CheckpointPolicy(max_events=100, interval=timedelta(seconds=5)), 6, 3),
        (MANUAL, 60, None),
    ],
)
async def test_the_policy_decides_when_progress_is_stored(policy, after_s, expected):
    """By count or by age, whichever comes first; and always when the pump closes."""
    setup = Setup()
    async with setup.processor(checkpoint_policy=policy, batch_size_max=1):
        await seconds(1)
        for _ in range(4):
            await seconds(0.01)
            setup.publish(1)
        await seconds(after_s)
        before_close = setup.checkpointed()

    assert (before_close, setup.checkpointed()) == (expected, 3)


async def test_a_handler_may_checkpoint_in_close():
    """After an orderly end the partition is still owned, and the state of that moment is stored."""
    setup = Setup()
    reasons = []

    class Closing(Noting):
        async def close(self, context, reason):
            reasons.append(reason)
            context.state = b"final"
            await context.checkpoint()

    setup.publish(1)
    async with setup.processor(lambda: Closing(setup), checkpoint_policy=MANUAL):
        await seconds(1)

    checkpoint = setup.checkpoint()

    assert reasons == [CloseReason.SHUTDOWN]
    assert checkpoint.state == b"final"


async def test_a_receiver_that_broke_or_was_displaced_is_opened_again():
    """The pump keeps its partition, and no event is skipped or delivered twice."""
    setup = Setup()
    async with setup.processor() as processor:
        for number in range(6):
            setup.publish(3)
            await seconds(2)
            if number % 2:
                setup.hub.break_links()
            else:
                setup.hub.displace("0", group=setup.group.name)
        await seconds(5)
        claims = processor.statistics().claim_count
        errors = processor.statistics().pumps[0].counters.receiver_error_count

    assert (setup.numbers(), claims, errors) == (list(range(18)), 1, 6)


async def test_delivery_continues_after_an_outage_of_the_hub():
    """Opening a receiver is retried with growing waits."""
    setup = Setup()
    async with setup.processor():
        setup.publish(2)
        await seconds(1)
        setup.hub.begin_outage()
        setup.publish(2)
        await seconds(120)
        setup.hub.end_outage()
        await seconds(40)

    assert setup.numbers() == [0, 1, 2, 3]


@pytest.mark.parametrize("published_before", [0, 1, 5])
async def test_the_first_owner_stores_which_event_was_the_latest(published_before):
    """Events published later are handled although it dies before it has handled one."""
    setup = Setup()
    setup.publish(published_before)
    latest: dict[str, Any] = {
        "initial_position": EventPosition.latest(),
        "checkpoint_policy": MANUAL,
    }

    class Stuck(Noting):
        async def process_events(self, context, events):
            await asyncio.sleep(3600)

    first = setup.processor(lambda: Stuck(setup), owner_id="a", **latest)
    await first.start()
    await seconds(5)
    setup.publish(3)
    await seconds(1)
    setup.store_by_owner["a"].is_out = True  # From now on it is as good as dead.
    async with setup.processor(owner_id="b", **latest):
        await seconds(200)
    await first.stop()

    assert setup.numbers() == list(range(published_before, published_before + 3))


def test_a_checkpoint_written_by_an_operator_does_not_cost_the_partition():
    """The owner reads it, proves that it still owns the partition, and goes on from there."""

    async def scenario():
        setup = Setup()
        async with setup.processor(checkpoint_policy=CheckpointPolicy(max_events=1)) as processor:
            setup.publish(3)
            await seconds(1)
            found = setup.checkpoint()
            assert found is not None
            store = setup.store_by_owner["a"].store
            await store.update_checkpoint(
                setup.group,
                CheckpointUpdate(
                    partition_id="0",
                    offset=str(found.offset),
                    sequence_number=int(found.sequence_number or 0),
                    replaces=found,
                    writer="operator",
                ),
            )
            setup.publish(2)
            await seconds(1)
            return setup.numbers(), setup.checkpointed(), processor.statistics().lost_count

    assert run_virtual(scenario()) == ([0, 1, 2, 3, 4], 4, 0)


async def test_a_checkpoint_that_an_operator_moved_ahead_is_not_moved_back():
    """Progress is stored again as soon as it is beyond the operator's position."""
    setup = Setup()
    policy = CheckpointPolicy(max_events=1)
    seen = []
    async with setup.processor(checkpoint_policy=policy):
        for count in (3, 2, 3):
            setup.publish(count)
            await seconds(5)
            seen.append(setup.checkpointed())
            if seen == [2]:
                ahead = CheckpointUpdate(
                    partition_id="0",
                    offset="99999",
                    sequence_number=5,
                    replaces=setup.checkpoint(),
                    writer="operator",
                )
                await setup.store_by_owner["a"].store.update_checkpoint(setup.group, ahead)

    assert seen == [2, 5, 7]


async def test_a_steal_is_noticed_when_a_checkpoint_write_is_refused():
    """The call is cancelled, ``close`` gets ``OWNERSHIP_LOST``, and cannot checkpoint."""
    setup = Setup()
    seen: list[object] = []

    class StolenFrom(Noting):
        async def process_events(self, context, events):
            store = setup.store_by_owner["a"].store
            (record,) = (await store.list_ownership(setup.group)).ownerships
            claim = OwnershipClaim(partition_id="0", owner_id="thief", expected_etag=record.etag)
            await store.claim_ownership(setup.group, [claim])
            await store.update_checkpoint(
                setup.group,
                CheckpointUpdate(
                    partition_id="0",
                    offset="1",
                    sequence_number=0,
                    replaces=setup.checkpoint(),
                    writer="thief/1",
                ),
            )
            await context.checkpoint(events[-1])

        async def close(self, context, reason):
            await asyncio.sleep(3)
            seen.append((reason, context.is_owned))
            try:
                await context.checkpoint()
            except OwnershipLostError as error:
                seen.append(error.partition_id)

    setup.publish(3)
    async with setup.processor(lambda: StolenFrom(setup)) as processor:
        await seconds(15)
        lost = processor.statistics().lost_count

    stored = setup.checkpointed()

    assert seen == [(CloseReason.OWNERSHIP_LOST, False), "0"]
    assert stored == 0
    assert lost == 1


def test_a_steal_is_noticed_at_the_next_poll():
    """Earlier than at the next renewal; until then both processors read the partition."""

    async def scenario():
        setup = Setup()
        async with setup.processor() as processor:
            await seconds(1)
            store = setup.store_by_owner["a"].store
            (record,) = (await store.list_ownership(setup.group)).ownerships
            claim = OwnershipClaim(partition_id="0", owner_id="thief", expected_etag=record.etag)
            await store.claim_ownership(setup.group, [claim])
            await seconds(11.5)
            return processor.statistics().lost_count

    assert run_virtual(scenario()) == 1


async def test_writes_of_unknown_outcome_lose_neither_events_nor_the_partition():
    """With half of all answers lost, each event is handled once and stored in the end."""
    setup = Setup()
    processor = setup.processor(checkpoint_policy=CheckpointPolicy(max_events=1))
    async with processor:
        setup.store_by_owner["a"].faults = StoreFaults(answer_lost_rate=0.5)
        for _ in range(50):
            setup.publish(1)
            await seconds(3)
        lost = processor.statistics().lost_count
        setup.store_by_owner["a"].faults = StoreFaults()
        await seconds(60)

    assert (setup.numbers(), setup.checkpointed(), lost) == (list(range(50)), 49, 0)


async def test_a_call_is_cancelled_when_its_lease_expires_and_repeated_later():
    """Another processor may own the partition by then. State counts the event once."""
    setup = Setup()
    seen = []

    class Long(Noting):
        async def process_events(self, context, events):
            context.state = str(int(context.state or b"0") + 1).encode()
            for _ in range(70):
                await asyncio.sleep(1.01)
                seen.append((asyncio.get_running_loop().time(), context.is_owned))
            await super().process_events(context, events)

    async with setup.processor(lambda: Long(setup)):
        await seconds(1)
        setup.publish(1)
        await seconds(1)
        setup.store_by_owner["a"].is_out = True
        await seconds(100)
        setup.store_by_owner["a"].is_out = False
        await seconds(100)

    assert all(is_owned for _, is_owned in seen)
    assert not [at_s for at_s, _ in seen if 54 < at_s < 100]
    assert setup.numbers() == [0]
    assert setup.checkpoint().state == b"1"


async def test_a_slow_handler_keeps_its_partition():
    """Its lease is renewed while a call takes longer than the expiration."""
    setup = Setup()

    class Slow(Noting):
        async def process_events(self, context, events):
            await asyncio.sleep(300)
            await super().process_events(context, events)

    setup.publish(1)
    async with setup.processor(lambda: Slow(setup)), setup.processor(owner_id="b"):
        await seconds(400)

    assert setup.numbers() == [0]


async def test_a_pump_that_failed_is_started_again_after_its_backoff():
    """Not as late as the next poll."""
    setup = Setup()
    setup.publish(1)
    times = []

    class FailingOnce(Noting):
        def __init__(self):
            super().__init__(setup)
            times.append(asyncio.get_running_loop().time())
            if len(times) == 1:
                raise RuntimeError

    async with setup.processor(
        FailingOnce,
        load_balancing_interval=timedelta(seconds=60),
        ownership_expiration=timedelta(hours=1),
    ):
        await seconds(30)

    (failed_s, started_s), numbers = times, setup.numbers()

    assert started_s - failed_s <= 0.2
    assert numbers == [0]


async def test_a_partition_is_served_from_its_initialization_to_its_close():
    """Not while its checkpoint cannot be adopted; and what one pump does is not said of others."""
    first, second = PumpFixture(), PumpFixture()
    second.checkpoints.read_error = StoreUnavailableError("no answer")
    pumps = [await first.start(), await second.start()]
    seen = [tuple(each.pump.statistics().is_served for each in pumps)]
    second.checkpoints.read_error = None
    await seconds(30)
    await pumps[0].end()
    seen.append(tuple(each.pump.statistics().is_served for each in pumps))
    await pumps[1].end()

    assert seen == [(True, False), (False, True)]


async def test_a_pump_that_ends_before_its_handler_is_prepared_does_not_close_it():
    """A handler whose ``initialize`` was not called has nothing to close."""
    fixture = PumpFixture()
    pump = await fixture.pump()
    pump._ready = asyncio.Event().wait  # type: ignore[assignment]
    running = RunningPump(pump)
    await seconds(5)
    took_s = await running.end()

    assert (took_s, fixture.handler.initialized, fixture.handler.closed) == (0, False, [])

"""One pump: when it stores progress, where it begins, what it survives, how it loses ownership."""

import asyncio
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
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.unit.eventproc._delivery.pump_fixture import PumpFixture, RunningPump

MANUAL = CheckpointPolicy.manual()


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


async def test_the_state_of_a_close_that_fails_is_undone():
    """As that of any call, and it is not stored while the call is under way."""
    setup, stored = Setup(), []

    class Failing(Noting):
        async def process_events(self, context, events):
            context.state = b"counted"

        async def close(self, context, reason):
            context.state = b"half done"
            await context.checkpoint()
            stored.append(setup.checkpoint().state)
            raise RuntimeError

    setup.publish(1)
    async with setup.processor(lambda: Failing(setup), checkpoint_policy=MANUAL):
        await seconds(1)

    assert [*stored, setup.checkpoint().state] == [b"counted", b"counted"]


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

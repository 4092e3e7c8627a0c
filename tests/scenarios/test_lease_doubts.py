"""Leases that are doubtful, lost or contradicted while a write is under way."""

import asyncio
from datetime import timedelta

from eventproc._group.leases import PartitionLocks
from eventproc.models import WriteOutcome
from tests.scenarios.group_setup import Setup, seconds
from tests.unit.eventproc._group.leases import LeasesFixture


async def test_a_hand_over_with_an_old_etag_is_written_again():
    """The answer to the last renewal was lost, but the record still names this processor."""
    fixture = LeasesFixture()
    await fixture.claim("0")
    await fixture.lose_renewals()
    outcome = await fixture.leases.transfer("0", "other")

    assert (outcome, fixture.setup.owners()) == (WriteOutcome.WON, {"0": "other"})


async def test_a_hand_over_does_not_overwrite_another_owner():
    """The lease was doubtful, and the partition has been stolen."""
    fixture = LeasesFixture()
    await fixture.claim("0")
    await fixture.lose_renewals()
    await fixture.steal("0")
    outcome = await fixture.leases.transfer("0", "other")

    assert (outcome, fixture.setup.owners()) == (WriteOutcome.LOST, {"0": "thief"})


async def test_a_partition_whose_ownership_record_was_deleted_is_claimed_anew_within_two_polls(
    caplog,
):
    """Its owner notices in the next listing, long before a renewal is due."""
    setup = Setup()
    async with setup.processor(ownership_expiration=timedelta(minutes=10)) as processor:
        await seconds(30)
        del setup.account.records(setup.group).ownership_by_partition["0"]
        await seconds(25)
        found = (setup.owners(), processor.statistics().lost_count)

    assert found == ({"0": "a"}, 1)
    assert [r.event for r in caplog.records] == ["ownership_lost"]


async def test_a_renewal_under_way_when_all_leases_are_dropped_restores_no_lease():
    """The answer may come after another processor has claimed the partition."""
    fixture = LeasesFixture()
    await fixture.claim("0")
    fixture.slow_store.answer_s = 5.0
    renewing = asyncio.create_task(fixture.leases.renew_all())
    await seconds(1)
    fixture.leases.lose_all()
    await renewing

    assert (fixture.leases.held, fixture.lost) == (frozenset(), ["0"])


async def test_the_end_of_a_write_wakes_every_waiter():
    """The one that has waited longest may be waiting for another partition."""
    locks, order = PartitionLocks(), []

    async def write(name: str, partition_id: str, for_s: float) -> None:
        async with locks.hold([partition_id]):
            await asyncio.sleep(for_s)
            order.append(name)

    async with asyncio.TaskGroup() as group:
        for name, partition_id, for_s in (
            ("first of 0", "0", 100.0),
            ("first of 1", "1", 1.0),
            ("second of 0", "0", 1.0),
            ("second of 1", "1", 1.0),
        ):
            group.create_task(write(name, partition_id, for_s))
            await asyncio.sleep(0)

    assert order == ["first of 1", "second of 1", "first of 0", "second of 0"]

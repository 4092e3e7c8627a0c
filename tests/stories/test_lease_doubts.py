"""Leases that are doubtful, lost or contradicted while a write is under way."""

import asyncio
from datetime import timedelta

from eventproc.concurrency.partition_locks import PartitionLocks
from eventproc.models import WriteOutcome
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds
from tests.unit.eventproc.ownership.leases import LeasesFixture


def in_session(until_s: float = 10_000.0) -> LeasesFixture:
    """The leases of a processor whose session is trusted until *until_s*."""
    return LeasesFixture(session_trusted_until_s=lambda: until_s)


def test_a_hand_over_with_an_old_etag_is_written_again():
    """The answer to the last renewal was lost, but the record still names this processor."""

    async def story():
        fixture = LeasesFixture()
        await fixture.claim("0")
        await fixture.lose_renewals()
        outcome = await fixture.leases.transfer("0", "other")
        return outcome, fixture.scene.owners()

    assert run_virtual(story()) == (WriteOutcome.WON, {"0": "other"})


def test_a_hand_over_does_not_overwrite_another_owner():
    """The lease was doubtful, and the partition has been stolen."""

    async def story():
        fixture = LeasesFixture()
        await fixture.claim("0")
        await fixture.lose_renewals()
        await fixture.steal("0")
        outcome = await fixture.leases.transfer("0", "other")
        return outcome, fixture.scene.owners()

    assert run_virtual(story()) == (WriteOutcome.LOST, {"0": "thief"})


def test_a_partition_whose_ownership_record_was_deleted_is_claimed_anew_within_two_polls(caplog):
    """Its owner notices in the next listing, long before a renewal is due."""

    async def story():
        scene = Scene()
        async with scene.processor(ownership_expiration=timedelta(minutes=10)) as processor:
            await seconds(30)
            del scene.account.records(scene.group).ownership_by_partition["0"]
            await seconds(25)
            return scene.owners(), processor.statistics().lost_count

    assert run_virtual(story()) == ({"0": "a"}, 1)
    assert [r.event for r in caplog.records] == ["ownership_lost"]


def test_with_session_leases_only_doubtful_records_are_renewed():
    """The session keeps the other records alive; a doubtful lease must be proved by a write."""

    async def story():
        fixture = in_session()
        await fixture.claim("0")
        await seconds(40)
        written = fixture.leases.write_count
        await fixture.leases.renew_due()
        needless = fixture.leases.write_count - written
        fixture.leases.doubt_all()
        doubted_s = fixture.leases.trusted_until_s("0")
        await fixture.leases.renew_due()
        return needless, doubted_s, fixture.leases.trusted_until_s("0")

    assert run_virtual(story()) == (0, 54.0, 40.0 + 54.0)


def test_a_doubtful_lease_is_not_trusted_by_a_listing():
    """It is trusted again only after its renewal, even if the session is trusted."""

    async def story():
        fixture = in_session()
        await fixture.claim("0")
        await seconds(30)
        await fixture.lose_renewals()
        await fixture.compare(await fixture.store.list_ownership(fixture.scene.group), 30.0)
        renewing = asyncio.create_task(fixture.leases.renew_due())
        fixture.slow_store.request_s = 5.0
        await seconds(7)
        meanwhile_s = fixture.leases.trusted_until_s("0")
        await renewing
        return meanwhile_s, fixture.leases.trusted_until_s("0")

    meanwhile_s, after_s = run_virtual(story())

    assert meanwhile_s == 54.0
    assert after_s == 35.0 + 54.0


def test_a_renewal_under_way_when_the_processor_is_fenced_restores_no_lease():
    """The answer may come after another processor has claimed the partition."""

    async def story():
        fixture = LeasesFixture()
        await fixture.claim("0")
        fixture.slow_store.answer_s = 5.0
        renewing = asyncio.create_task(fixture.leases.renew_all())
        await seconds(1)
        fixture.leases.lose_all()
        await renewing
        return fixture.leases.held, fixture.lost

    assert run_virtual(story()) == (set(), ["0"])


def test_a_listing_that_contradicts_a_lease_does_not_extend_its_trust():
    """Not even while the write that decides is under way."""

    async def story():
        fixture = in_session()
        await fixture.claim("0", "1")
        await fixture.steal("0")
        await seconds(40)
        listed = await fixture.store.list_ownership(fixture.scene.group)
        fixture.slow_store.request_s = 5.0
        comparing = asyncio.create_task(fixture.compare(listed, 40.0))
        await seconds(1)
        meanwhile_s = fixture.leases.trusted_until_s("0")
        await comparing
        return meanwhile_s, fixture.lost, fixture.leases.trusted_until_s("1")

    assert run_virtual(story()) == (54.0, ["0"], 40.0 + 54.0)


def test_the_end_of_a_write_wakes_every_waiter():
    """The one that has waited longest may be waiting for another partition."""

    async def story():
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
        return order

    assert run_virtual(story()) == ["first of 1", "second of 1", "first of 0", "second of 0"]

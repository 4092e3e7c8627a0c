"""Leases count from before a confirmed write was sent; writes of a partition never overlap."""

import asyncio
from dataclasses import replace

import pytest

from eventproc.errors import StoreError, StoreUnavailableError
from eventproc.models import WriteOutcome
from eventproc.testing import StoreFaults
from tests.scenarios.group_setup import Setup, seconds
from tests.unit.eventproc._group.leases import LeasesFixture, SlowStore


async def test_a_lease_counts_from_before_its_write_was_sent():
    """However late the answer is: a processor that takes over counts from the write."""
    fixture = LeasesFixture()
    fixture.slow_store.request_s, fixture.slow_store.answer_s = 5.0, 30.0
    await fixture.claim("0")
    first_s = fixture.trusted_until_s("0")
    await fixture.leases.renew_due()

    assert (
        first_s,
        fixture.trusted_until_s("0"),
        fixture.leases.is_any_trusted,
    ) == (54.0, 35.0 + 54.0, True)


async def test_a_partition_without_a_lease_is_not_trusted():
    """It can neither be verified nor handed over."""
    leases = LeasesFixture().leases

    assert (
        leases.remaining_s("0"),
        await leases.verify("0"),
        await leases.transfer("0", None),
    ) == (float("-inf"), False, WriteOutcome.LOST)


async def test_writes_of_one_partition_do_not_overlap():
    """The second would conflict with the first one's new ETag, and the lease would be lost."""
    fixture = LeasesFixture()
    await fixture.claim("0", "1")
    fixture.slow_store.request_s = fixture.slow_store.answer_s = 2.0
    await seconds(25)
    _, *verified = await asyncio.gather(
        fixture.leases.renew_due(),
        fixture.leases.verify("0"),
        fixture.leases.verify("0"),
    )

    assert verified == [True, True]
    assert (fixture.lost, fixture.leases.held) == ([], frozenset({"0", "1"}))


async def test_a_renewal_whose_answer_was_lost_is_recognised():
    """The next renewal is refused because of the ETag; reading shows that the record is our own."""
    fixture = LeasesFixture()
    await fixture.claim("0")
    await seconds(25)
    fixture.store.faults = StoreFaults(answer_lost_rate=1.0)
    await fixture.leases.renew_due()
    until_s = fixture.trusted_until_s("0")
    fixture.store.faults = StoreFaults()
    await fixture.leases.renew_due()

    assert (until_s, fixture.trusted_until_s("0"), fixture.lost) == (54.0, 79.0, [])


async def test_a_record_that_a_duplicate_owner_may_have_written_is_not_an_own_renewal():
    """Both write the same owner id, so the record does not show whose it is: the lease is lost."""

    async def is_sole_holder() -> bool:
        return False

    fixture = LeasesFixture(is_sole_holder=is_sole_holder)
    await fixture.claim("0")
    await fixture.lose_renewals()
    is_ours = await fixture.leases.verify("0")

    assert (is_ours, fixture.leases.held, fixture.lost) == (False, frozenset(), ["0"])


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_record_that_a_duplicate_owner_may_have_written_is_not_released(is_known):
    """This process was suspended while it stopped, and replaced by one with its owner id."""

    async def is_sole_holder() -> bool:
        if not is_known:
            raise StoreUnavailableError("no answer")
        return False

    fixture = LeasesFixture(is_sole_holder=is_sole_holder)
    await fixture.claim("0")
    await fixture.lose_renewals()
    outcome = await fixture.leases.transfer("0", None)

    assert (outcome, fixture.setup.owners()) == (WriteOutcome.LOST, {"0": "me"})


async def test_a_duplicate_owner_is_checked_after_the_record_was_read():
    """It writes its member record first, so a check after reading its ownership record finds it."""
    written: list[str] = []

    async def is_sole_holder() -> bool:
        return not written

    fixture = LeasesFixture(is_sole_holder=is_sole_holder)
    await fixture.claim("0")
    await fixture.lose_renewals()
    listing = fixture.store.list_ownership

    async def list_after_duplicate_wrote(group):
        written.append("member record")
        return await listing(group)

    fixture.store.list_ownership = list_after_duplicate_wrote  # type: ignore[method-assign]

    assert (await fixture.leases.verify("0"), fixture.lost) == (False, ["0"])


async def test_a_lease_stays_doubtful_if_the_member_records_cannot_be_read():
    """The ownership record could be read, the member record could not: neither lost nor trusted."""

    async def unknown() -> bool:
        raise StoreUnavailableError("no answer")

    fixture = LeasesFixture(is_sole_holder=unknown)
    await fixture.claim("0")
    await fixture.lose_renewals()
    with pytest.raises(StoreError, match="could not be verified"):
        await fixture.leases.verify("0")

    assert (fixture.trusted_until_s("0"), fixture.lost) == (54.0, [])


async def test_a_claim_of_unknown_outcome_gives_no_lease():
    """Another processor may have won; the next poll shows the owner."""
    fixture = LeasesFixture()
    fixture.store.faults = StoreFaults(answer_lost_rate=1.0)
    await fixture.claim("0")

    assert (fixture.leases.held, fixture.leases.is_any_trusted) == (frozenset(), False)


async def test_a_claim_under_way_when_all_leases_are_dropped_gives_no_lease():
    """The partition may have been claimed by another processor since."""
    fixture = LeasesFixture()
    fixture.slow_store.answer_s = 5.0
    claiming = asyncio.create_task(fixture.claim("0"))
    await seconds(1)
    fixture.leases.lose_all()
    await claiming

    assert fixture.leases.held == set()


async def test_a_renewal_of_unknown_outcome_renews_nothing():
    """The lease is trusted as long as by the last confirmed write, and ``verify`` raises."""
    fixture = LeasesFixture()
    await fixture.claim("0")
    await seconds(25)
    fixture.store.is_out = True
    await fixture.leases.renew_due()
    with pytest.raises(StoreError, match="could not be verified"):
        await fixture.leases.verify("0")

    assert fixture.trusted_until_s("0") == 54.0


async def test_a_lease_stays_doubtful_while_the_store_does_not_answer():
    """It is neither lost nor renewed."""
    fixture = LeasesFixture()
    await fixture.claim("0")
    fixture.store.is_out = True
    with pytest.raises(StoreError):
        await fixture.leases.verify("0")

    assert (fixture.leases.held, fixture.lost) == (frozenset({"0"}), [])


async def test_a_doubtful_lease_is_lost_if_the_record_names_another_owner():
    """The partition was stolen after the renewal of unknown outcome."""
    fixture = LeasesFixture()
    await fixture.claim("0")
    fixture.store.faults = StoreFaults(answer_lost_rate=1.0)
    await seconds(25)
    await fixture.leases.renew_due()
    fixture.store.faults = StoreFaults()
    await fixture.steal("0")
    is_ours = await fixture.leases.verify("0")

    assert (is_ours, fixture.leases.held, fixture.lost) == (False, frozenset(), ["0"])


async def test_a_listing_that_contradicts_a_lease_is_verified_by_a_write():
    """A listing requested before the claim was answered contradicts nothing and causes no write."""
    fixture = LeasesFixture()
    async with fixture.store:
        asked_at_s = asyncio.get_running_loop().time()
        old = await fixture.store.list_ownership(fixture.setup.group)
        await seconds(1)
        await fixture.claim("0", "1")
        written = fixture.leases.write_count
        await fixture.compare(old, asked_at_s)
        extra_write_count = fixture.leases.write_count - written
        await seconds(1)
        await fixture.steal("1")
        asked_at_s = asyncio.get_running_loop().time()
        new = await fixture.store.list_ownership(fixture.setup.group)
        await fixture.compare(new, asked_at_s)

    assert (extra_write_count, fixture.lost, fixture.leases.held) == (0, ["1"], frozenset({"0"}))


async def test_a_listing_that_shows_a_renewal_under_way_causes_no_other_write():
    """Its answer, which comes later, shows that the lease is ours."""
    fixture = LeasesFixture()
    await fixture.claim("0")
    fixture.slow_store.answer_s = 2.0
    await seconds(25)
    renewing = asyncio.create_task(fixture.leases.renew_due())
    await seconds(1)
    async with fixture.store:
        asked_at_s = asyncio.get_running_loop().time()
        listed = await fixture.store.list_ownership(fixture.setup.group)
        await fixture.compare(listed, asked_at_s)
    await renewing

    assert (fixture.leases.write_count, fixture.lost) == (2, [])


@pytest.mark.parametrize(
    "faults", [StoreFaults(answer_lost_rate=1.0), StoreFaults(throttle_rate=1.0)]
)
async def test_a_hand_over_of_unknown_outcome_is_repeated_after_reading(faults):
    """Only if the record still names this processor."""
    fixture = LeasesFixture()
    await fixture.claim("0")
    fixture.store.faults = faults
    listing = fixture.store.list_ownership

    async def list_after_faults_ended(group):
        fixture.store.faults = StoreFaults()
        return await listing(group)

    fixture.store.list_ownership = list_after_faults_ended  # type: ignore[method-assign]
    await fixture.leases.transfer("0", "other")

    assert (fixture.setup.owners(), fixture.leases.held) == ({"0": "other"}, frozenset())


@pytest.mark.parametrize("after_s", [0.5, 3.0])
async def test_a_claim_under_way_at_a_stop_is_released(after_s):
    """``stop`` waits for the cycle that sent it. Else the partition would stay owned, unserved."""
    setup = Setup(3)
    processor = setup.processor()
    slow_store = SlowStore(setup.account)
    slow_store.request_s = slow_store.answer_s = 2.0
    setup.store_by_owner["a"].store = slow_store
    await processor.start()
    await seconds(after_s)
    await processor.stop()
    await seconds(10)

    assert set(setup.owners().values()) <= {None}


async def test_renewal_hand_over_and_release_keep_the_epoch():
    """Only a new claim gets a new one."""
    fixture = LeasesFixture()
    await fixture.claim("0", "1", epoch=7)
    await fixture.leases.renew_all()
    await fixture.leases.transfer("0", "other")
    await fixture.leases.transfer("1", None)

    written = [
        (record.owner_id, record.epoch)
        for record in fixture.setup.account.records(
            fixture.setup.group
        ).ownership_by_partition.values()
    ]
    assert written == [("other", 7), (None, 7)]


async def test_a_record_with_another_epoch_is_not_an_own_renewal():
    """A newer process with this owner id claimed the partition in between."""
    fixture = LeasesFixture()
    await fixture.claim("0", epoch=7)
    await fixture.lose_renewals()
    records = fixture.setup.account.records(fixture.setup.group).ownership_by_partition
    records["0"] = replace(records["0"], etag="newer", epoch=8)

    assert (await fixture.leases.verify("0"), fixture.lost, records["0"].etag) == (
        False,
        ["0"],
        "newer",
    )

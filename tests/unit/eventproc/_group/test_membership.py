"""Member records: written before the first plan, one processor per owner id, renewed, deleted."""

import asyncio
from dataclasses import replace

import pytest

from eventproc.errors import DuplicateOwnerError, StoreUnavailableError
from eventproc.models import MemberStatus, OwnershipClaim, WriteOutcome
from tests.scenarios.group_setup import seconds
from tests.scenarios.membership_fixture import (
    ANSWER_WITHIN,
    EXPIRATION,
    POLL_INTERVAL,
    MembershipFixture,
)


async def test_entering_writes_the_member_record():
    """At once, if there is no fresh record of the same owner id."""
    fixture = await MembershipFixture.opened()
    await fixture.entered("1")

    assert fixture.incarnation() == "1"
    assert asyncio.get_running_loop().time() < 1


async def test_a_live_holder_of_the_owner_id_answers_and_the_newcomer_is_refused():
    """The holder writes its record back, and the newcomer raises ``DuplicateOwnerError``."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    entering = asyncio.create_task(fixture.entered("2"))
    await seconds(5)
    raised = await fixture.answered(holder, entering)

    assert isinstance(raised, DuplicateOwnerError)
    assert fixture.incarnation() == "1"


async def test_a_newcomer_under_a_used_owner_id_waits_as_long_as_an_answer_may_take():
    """A dead holder does not answer, and the newcomer joins."""
    fixture = await MembershipFixture.opened()
    await fixture.entered("1")
    await fixture.entered("2")

    assert asyncio.get_running_loop().time() >= ANSWER_WITHIN.total_seconds()
    assert fixture.incarnation() == "2"


@pytest.mark.parametrize(("request_s", "answer_s"), [(0, 0), (11, 0), (11, 11)])
async def test_a_holder_has_its_whole_time_to_answer_after_a_newcomer_can_be_seen(
    request_s, answer_s
):
    """The wait counts from the answer to the newcomer's write, however late that came."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    fixture.slow.request_s, fixture.slow.answer_s = request_s, answer_s
    entering = asyncio.create_task(fixture.entered("2", is_slow=True))
    await seconds(request_s + ANSWER_WITHIN.total_seconds() - 0.5)
    assert fixture.incarnation() == "2"
    raised = await fixture.answered(holder, entering)

    assert isinstance(raised, DuplicateOwnerError)
    assert fixture.incarnation() == "1"


async def test_a_newcomer_still_waits_if_the_answer_to_its_first_write_was_lost():
    """Its second attempt finds its own record, which has replaced the live holder's."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    announce = fixture.slow.announce_member
    lost: list[object] = []

    async def lose_first_answer(*arguments):
        result = await announce(*arguments)
        if lost:
            return result
        lost.append(result)
        return replace(result, outcome=WriteOutcome.UNKNOWN, member=None)

    fixture.slow.announce_member = lose_first_answer  # type: ignore[method-assign]
    entering = asyncio.create_task(fixture.entered("2", is_slow=True))
    await seconds(5)
    raised = await fixture.answered(holder, entering)

    assert isinstance(raised, DuplicateOwnerError)


async def test_a_newcomer_decides_by_a_listing_requested_after_the_wait():
    """A listing that was requested earlier may not show an answer that came in time."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    entering = asyncio.create_task(fixture.entered("2", is_slow=True))
    await seconds(ANSWER_WITHIN.total_seconds() - 1.5)
    fixture.slow.listing_answer_s = 3.0
    await seconds(1.2)
    raised = await fixture.answered(holder, entering)

    assert isinstance(raised, DuplicateOwnerError)
    assert fixture.incarnation() == "1"


async def test_a_newcomer_whose_every_write_comes_too_late_learns_that_its_owner_id_is_in_use():
    """Its reads are slow, and the holder has written the record again before each of its writes."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    newcomer = fixture.membership("2", is_slow=True)
    fixture.slow.listing_answer_s = 1.0

    async def write_often():
        while True:
            await fixture.refresh(holder)
            await holder.change_to(MemberStatus.ACTIVE)
            await seconds(0.5)

    writing = asyncio.create_task(write_often())
    with pytest.raises(DuplicateOwnerError, match="wrote the member record"):
        await newcomer.enter(answer_within=ANSWER_WITHIN, poll_interval=POLL_INTERVAL)
    writing.cancel()


async def test_a_processor_whose_leases_expired_yields_to_the_one_that_took_its_id():
    """It has no trusted lease, so it raises ``DuplicateOwnerError``."""
    fixture = await MembershipFixture.opened()
    expired = await fixture.entered("1")
    await seconds(2 * EXPIRATION.total_seconds())
    await fixture.entered("2")

    with pytest.raises(DuplicateOwnerError, match="while this processor was away"):
        await fixture.refresh(expired)
    assert fixture.incarnation() == "2"


async def test_a_holder_that_answers_too_late_yields_although_it_trusts_its_leases():
    """The newcomer's wait is over and it has joined."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    await fixture.entered("2")
    await seconds(1)

    with pytest.raises(DuplicateOwnerError):
        await fixture.refresh(holder, owns=True, is_trusted=True)


async def test_a_newcomer_yields_to_a_holder_that_writes_its_record_back():
    """The holder's answer was under way when the newcomer read the record for the last time."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    newcomer = await fixture.entered("2")
    await fixture.refresh(holder, owns=True, is_trusted=True)

    assert fixture.incarnation() == "1"
    with pytest.raises(DuplicateOwnerError):
        await fixture.refresh(newcomer, owns=True, is_trusted=True)


async def test_of_two_processors_that_overwrite_each_other_exactly_one_yields():
    """Neither replaced the other when it joined, because the record had been deleted."""
    fixture = await MembershipFixture.opened()
    first = await fixture.entered("1")
    del fixture.setup.account.records(fixture.setup.group).member_by_owner["me"]
    second = await fixture.entered("2")
    refused = []
    for _ in range(10):
        for membership in (first, second):
            if membership in refused:
                continue
            try:
                await fixture.refresh(membership, owns=True, is_trusted=True)
            except DuplicateOwnerError:
                refused.append(membership)

    assert len(refused) == 1


@pytest.mark.parametrize("owns", [False, True])
async def test_only_a_processor_without_partitions_renews_its_member_record(owns):
    """The ownership records of the others show that they are alive."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    before = fixture.member()
    await seconds(EXPIRATION.total_seconds() / 2)
    await fixture.refresh(membership, owns=owns, is_trusted=True)

    assert (fixture.member() == before) is owns


async def test_a_deleted_member_record_is_written_again():
    """Without it no member would hand a partition over to this processor."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    del fixture.setup.account.records(fixture.setup.group).member_by_owner["me"]
    await fixture.refresh(membership, owns=True, is_trusted=True)

    assert fixture.incarnation() == "1"


@pytest.mark.parametrize("status", [MemberStatus.LEAVING, MemberStatus.RESTARTING])
async def test_a_change_of_status_is_written_although_the_etag_is_out_of_date(status):
    """Another write has changed the record in the meantime."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    written = fixture.member()
    assert written is not None
    await fixture.store.announce_member(fixture.setup.group, written)
    await membership.change_to(status)
    changed = fixture.member()

    assert changed is not None
    assert changed.status is status


async def test_a_duplicate_owner_is_forgotten_after_an_expiration():
    """Else each renewal of unknown outcome would cost a partition, while the holder runs."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    entering = asyncio.create_task(fixture.entered("2"))
    await seconds(5)
    assert isinstance(await fixture.answered(holder, entering), DuplicateOwnerError)
    before = await holder.is_sole_holder()
    await seconds(EXPIRATION.total_seconds())

    assert not before
    assert await holder.is_sole_holder()


async def test_a_processor_whose_start_failed_deletes_its_record():
    """Nothing is planned for it any more."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    await membership.retreat()

    assert fixture.member() is None


async def test_a_processor_whose_start_failed_leaves_the_record_of_a_holder_of_its_owner_id():
    """It has written over that record, which the holder writes back when it reads this."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    newcomer = fixture.membership("2")
    entering = asyncio.create_task(
        newcomer.enter(answer_within=ANSWER_WITHIN, poll_interval=POLL_INTERVAL)
    )
    await seconds(0.5)
    entering.cancel()
    await newcomer.retreat()
    between = fixture.incarnation()
    await fixture.refresh(holder, owns=True, is_trusted=True)

    assert between == "2"
    assert fixture.incarnation() == "1"


async def test_a_processor_whose_start_failed_stays_a_member_if_records_name_it_as_an_owner():
    """An owner without a member record would look like a processor of an Azure SDK."""
    fixture = await MembershipFixture.opened()
    former = await fixture.entered("1")
    claim = OwnershipClaim(partition_id="0", owner_id="me", expected_etag=None)
    await fixture.store.claim_ownership(fixture.setup.group, [claim])
    await former.change_to(MemberStatus.RESTARTING)
    membership = await fixture.entered("2")
    await membership.retreat()

    assert fixture.incarnation() == "2"


async def test_a_processor_whose_start_was_cancelled_writes_no_record_after_that():
    """Its first listing is still under way."""
    fixture = await MembershipFixture.opened()
    fixture.slow.listing_answer_s = 5.0
    membership = fixture.membership("1", is_slow=True)
    entering = asyncio.create_task(
        membership.enter(answer_within=ANSWER_WITHIN, poll_interval=POLL_INTERVAL)
    )
    await seconds(1)
    await membership.retreat()
    with pytest.raises(StoreUnavailableError):
        await entering

    assert fixture.member() is None

"""The member record: written only while it is this processor's own."""

import asyncio
from dataclasses import replace

import pytest

from eventproc.errors import DuplicateOwnerError, StoreUnavailableError
from eventproc.models import Member, MemberStatus
from tests.scenarios.group_setup import seconds
from tests.scenarios.membership_fixture import (
    ANSWER_WITHIN,
    EXPIRATION,
    MembershipFixture,
)


def record(fixture: MembershipFixture) -> Member:
    """The stored member record."""
    member = fixture.member()
    assert member is not None
    return member


async def test_a_member_record_is_deleted_although_the_answer_to_its_newest_write_was_lost():
    """Its ETag is read then; the record of another incarnation stays."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    await fixture.store.announce_member(fixture.setup.group, record(fixture))
    await membership.withdraw()
    assert fixture.member() is None

    membership = await fixture.entered("1")
    other = replace(record(fixture), incarnation="2")
    await fixture.store.announce_member(fixture.setup.group, other)
    await membership.withdraw()
    assert fixture.incarnation() == "2"


async def test_a_leave_that_is_announced_again_and_again_ends_with_the_record():
    """The record that was deleted meanwhile stays deleted."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    await fixture.store.announce_member(fixture.setup.group, record(fixture))
    listed = fixture.store.list_members

    async def withdrawn_meanwhile(group):
        fixture.store.list_members = listed  # type: ignore[method-assign]
        found = await listed(group)
        await membership.withdraw()
        return found

    fixture.store.list_members = withdrawn_meanwhile  # type: ignore[method-assign]
    await membership.change_to(MemberStatus.LEAVING)

    assert fixture.member() is None


async def test_leaving_does_not_overwrite_another_incarnation():
    """After one attempt the record is left to the other."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    other = replace(record(fixture), incarnation="2")
    await fixture.store.announce_member(fixture.setup.group, other)
    announce, attempts = fixture.store.announce_member, []

    async def counted(*arguments):
        attempts.append(arguments)
        return await announce(*arguments)

    fixture.store.announce_member = counted  # type: ignore[method-assign]
    await membership.change_to(MemberStatus.LEAVING)

    assert len(attempts) == 1
    assert (record(fixture).incarnation, record(fixture).status) == ("2", MemberStatus.ACTIVE)


async def test_a_start_does_not_wait_for_a_restarting_processor():
    """Its status shows that it has stopped, although the record is fresh."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    await membership.change_to(MemberStatus.RESTARTING)
    before_s = asyncio.get_running_loop().time()
    await fixture.entered("2")

    assert asyncio.get_running_loop().time() == before_s
    assert fixture.incarnation() == "2"


async def test_a_start_does_not_wait_for_ever_for_a_store_that_went_away():
    """Another holder of the owner id may be live, so the start fails."""
    fixture = await MembershipFixture.opened()
    await fixture.entered("1")
    entering = asyncio.create_task(fixture.entered("2", is_slow=True))
    await seconds(1)

    async def unanswered(_group):
        raise StoreUnavailableError("no answer")

    fixture.slow.list_members = unanswered  # type: ignore[method-assign]
    await asyncio.wait([entering], timeout=10 * ANSWER_WITHIN.total_seconds())

    assert entering.done()
    assert isinstance(entering.exception(), StoreUnavailableError)


async def test_without_a_member_record_no_processor_is_the_sole_holder_of_an_id():
    """A deleted record does not show which processors wrote under the id since."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    before = await membership.is_sole_holder()
    del fixture.setup.account.records(fixture.setup.group).member_by_owner["me"]

    assert before
    assert not await membership.is_sole_holder()


async def test_a_record_with_a_changed_etag_is_renewed():
    """The renewal names the ETag of the newest listing."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    await fixture.store.announce_member(fixture.setup.group, record(fixture))
    touched = record(fixture)
    await seconds(EXPIRATION.total_seconds() / 2)
    await fixture.refresh(membership)

    assert record(fixture).last_modified != touched.last_modified


async def test_two_holders_of_an_owner_id_may_overwrite_each_other_a_few_times():
    """A newcomer without an answer to its first write writes again. The fourth time, one yields."""
    fixture = await MembershipFixture.opened()
    membership = await fixture.entered("1")
    for _ in range(3):
        await fixture.store.announce_member(
            fixture.setup.group, replace(record(fixture), incarnation="2")
        )
        await fixture.refresh(membership, owns=True, is_trusted=True)
    stayed = fixture.incarnation()
    await fixture.store.announce_member(
        fixture.setup.group, replace(record(fixture), incarnation="2")
    )

    assert stayed == "1"
    with pytest.raises(DuplicateOwnerError):
        await fixture.refresh(membership, owns=True, is_trusted=True)


async def renewing_newcomer(fixture: MembershipFixture) -> None:
    """Let another process with the same owner id join, and renew its member record once."""
    newcomer = await fixture.entered("2")
    await seconds(EXPIRATION.total_seconds() / 3)
    await fixture.refresh(newcomer)
    assert record(fixture).last_modified == fixture.setup.account.now()


async def test_a_holder_yields_to_a_newcomer_that_has_joined_and_renewed_its_record():
    """The record is newer than the wait, but the holder read nothing for longer than that."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    await renewing_newcomer(fixture)

    with pytest.raises(DuplicateOwnerError, match="while this processor was away"):
        await fixture.refresh(holder, is_trusted=True)
    assert fixture.incarnation() == "2"


async def test_a_cycle_that_failed_before_it_answered_is_no_answer():
    """The holder read the newcomer's record and then the store failed, so the newcomer joined."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    await renewing_newcomer(fixture)
    present = await fixture.store.list_members(fixture.setup.group)
    holder.note(present, asyncio.get_running_loop().time())
    await seconds(1)
    with pytest.raises(DuplicateOwnerError, match="while this processor was away"):
        await fixture.refresh(holder, is_trusted=True)

    assert fixture.incarnation() == "2"


async def test_a_holder_that_polls_stays():
    """Whether it yields depends on how long it read nothing."""
    fixture = await MembershipFixture.opened()
    holder = await fixture.entered("1")
    for _ in range(4):
        await seconds(10)
        await fixture.refresh(holder, is_trusted=True)
    entering = asyncio.create_task(fixture.entered("2"))
    await seconds(5)
    await fixture.refresh(holder, is_trusted=True)

    with pytest.raises(DuplicateOwnerError):
        await entering
    assert fixture.incarnation() == "1"

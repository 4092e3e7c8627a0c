"""The member record with session leases: renewed only while it is this processor's own."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from eventproc.errors import DuplicateOwnerError, StoreUnavailableError
from eventproc.models import LeaseMode, Member, MemberStatus
from eventproc.ownership.membership import Membership
from tests.stories.membership_fixture import (
    ANSWER_WITHIN,
    EXPIRATION,
    POLL_INTERVAL,
    MembershipFixture,
    run,
)
from tests.stories.scene import seconds


async def entered(
    fixture: MembershipFixture, calls: list[str] | None = None, *, is_slow=False
) -> Membership:
    """A membership that has joined; *calls* gets its calls about the leases."""
    membership = fixture.membership("1", mode=LeaseMode.SESSION, is_slow=is_slow)
    await membership.enter(answer_within=ANSWER_WITHIN, poll_interval=POLL_INTERVAL)
    if calls is not None:
        membership.on_fenced = lambda: calls.append("dead")
        membership.on_lapsed = lambda: calls.append("lapsed")
    return membership


@asynccontextmanager
async def kept(membership: Membership):
    """Renew the membership in the background meanwhile."""
    keeping = asyncio.create_task(membership.keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


def record(fixture: MembershipFixture) -> Member:
    """The stored member record."""
    member = fixture.member()
    assert member is not None
    return member


def test_after_the_member_record_is_deleted_nothing_is_renewed():
    """Renewals may still run; they write nothing and log nothing."""

    async def story(fixture):
        membership = await entered(fixture)
        written = []
        announce = fixture.store.announce_member

        async def counted(*arguments):
            written.append(arguments)
            return await announce(*arguments)

        async with kept(membership):
            await seconds(1)
            await membership.withdraw()
            fixture.store.announce_member = counted
            await seconds(2 * EXPIRATION.total_seconds())

        assert fixture.member() is None
        assert written == []

    run(story)


def test_a_renewal_under_way_does_not_restore_a_deleted_member_record():
    """The record is deleted after the renewal has ended, so that none is left."""

    async def story(fixture):
        calls: list[str] = []
        membership = await entered(fixture, calls, is_slow=True)
        async with kept(membership):
            await seconds(19)
            fixture.slow.request_s = 5.0
            await seconds(4)  # The renewal is under way.
            await membership.withdraw()
            await seconds(20)

        assert fixture.member() is None
        assert calls == []

    run(story)


def test_a_member_record_is_deleted_although_the_answer_to_its_newest_write_was_lost():
    """Its ETag is read then; the record of another incarnation stays."""

    async def story(fixture):
        membership = await entered(fixture)
        await fixture.store.announce_member(fixture.scene.group, record(fixture))
        await membership.withdraw()
        assert fixture.member() is None

        membership = await entered(fixture)
        other = replace(record(fixture), incarnation="2")
        await fixture.store.announce_member(fixture.scene.group, other)
        await membership.withdraw()
        assert fixture.incarnation() == "2"

    run(story)


def test_a_renewal_does_not_write_over_another_incarnation():
    """The next cycle decides which of the two incarnations yields."""

    async def story(fixture):
        membership = await entered(fixture)
        other = replace(record(fixture), incarnation="2")
        await fixture.store.announce_member(fixture.scene.group, other)
        async with kept(membership):
            await seconds(EXPIRATION.total_seconds())

        assert fixture.incarnation() == "2"

    run(story)


def test_leaving_does_not_overwrite_another_incarnation():
    """After one attempt the record is left to the other."""

    async def story(fixture):
        membership = await entered(fixture)
        other = replace(record(fixture), incarnation="2")
        await fixture.store.announce_member(fixture.scene.group, other)
        announce, attempts = fixture.store.announce_member, []

        async def counted(*arguments):
            attempts.append(arguments)
            return await announce(*arguments)

        fixture.store.announce_member = counted
        await membership.change_to(MemberStatus.LEAVING)

        assert len(attempts) == 1
        assert (record(fixture).incarnation, record(fixture).status) == ("2", MemberStatus.ACTIVE)

    run(story)


def test_a_start_does_not_wait_for_a_restarting_processor():
    """Its status shows that it has stopped, although the record is fresh."""

    async def story(fixture):
        membership = await fixture.entered("1")
        await membership.change_to(MemberStatus.RESTARTING)
        before_s = asyncio.get_running_loop().time()
        await fixture.entered("2")

        assert asyncio.get_running_loop().time() == before_s
        assert fixture.incarnation() == "2"

    run(story)


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_processor_that_was_fenced_drops_its_leases_and_writes_its_record_again(is_dead):
    """In the next cycle, before a renewal is due."""

    async def story(fixture):
        calls: list[str] = []
        membership = await entered(fixture, calls)
        if is_dead:
            dead = replace(record(fixture), status=MemberStatus.DEAD)
            await fixture.store.announce_member(fixture.scene.group, dead)
        else:
            del fixture.scene.account.records(fixture.scene.group).member_by_owner["me"]
        await fixture.refresh(membership, owns=True, is_trusted=True)

        assert calls == ["dead"]
        assert record(fixture).status is MemberStatus.ACTIVE

    run(story)


def test_a_renewal_finds_that_the_processor_was_fenced():
    """Between two cycles; the leases are dropped before the record is written again."""

    async def story(fixture):
        calls: list[str] = []
        membership = await entered(fixture, calls)
        dead = replace(record(fixture), status=MemberStatus.DEAD)
        await fixture.store.announce_member(fixture.scene.group, dead)
        async with kept(membership):
            await seconds(EXPIRATION.total_seconds() / 2)

        assert calls == ["dead"]
        assert record(fixture).status is MemberStatus.ACTIVE

    run(story)


def test_a_start_does_not_wait_for_ever_for_a_store_that_went_away():
    """Another holder of the owner id may be live, so the start fails."""

    async def story(fixture):
        await fixture.entered("1")
        entering = asyncio.create_task(fixture.entered("2", is_slow=True))
        await seconds(1)

        async def unanswered(_group):
            raise StoreUnavailableError("no answer")

        fixture.slow.list_members = unanswered
        await asyncio.wait([entering], timeout=10 * ANSWER_WITHIN.total_seconds())

        assert entering.done()
        assert isinstance(entering.exception(), StoreUnavailableError)

    run(story)


def test_without_a_member_record_no_processor_is_the_sole_holder_of_an_id():
    """A deleted record does not show which processors wrote under the id since."""

    async def story(fixture):
        membership = await fixture.entered("1")
        before = await membership.is_sole_holder()
        del fixture.scene.account.records(fixture.scene.group).member_by_owner["me"]

        assert before
        assert not await membership.is_sole_holder()

    run(story)


def test_a_record_with_a_changed_etag_is_renewed():
    """The renewal names the ETag of the newest listing."""

    async def story(fixture):
        membership = await fixture.entered("1")
        await fixture.store.announce_member(fixture.scene.group, record(fixture))
        touched = record(fixture)
        await seconds(EXPIRATION.total_seconds() / 2)
        await fixture.refresh(membership)

        assert record(fixture).last_modified != touched.last_modified

    run(story)


def test_two_holders_of_an_owner_id_may_overwrite_each_other_a_few_times():
    """A newcomer without an answer to its first write writes again. The fourth time, one yields."""

    async def story(fixture):
        membership = await fixture.entered("1")
        for _ in range(3):
            await fixture.store.announce_member(
                fixture.scene.group, replace(record(fixture), incarnation="2")
            )
            await fixture.refresh(membership, owns=True, is_trusted=True)
        stayed = fixture.incarnation()
        await fixture.store.announce_member(
            fixture.scene.group, replace(record(fixture), incarnation="2")
        )

        assert stayed == "1"
        with pytest.raises(DuplicateOwnerError):
            await fixture.refresh(membership, owns=True, is_trusted=True)

    run(story)


def test_a_holder_yields_to_a_newcomer_that_has_joined_and_renewed_its_record():
    """The record is newer than the wait, but the holder read nothing for longer than that."""

    async def story(fixture):
        holder = await entered(fixture)
        newcomer = fixture.membership("2", mode=LeaseMode.SESSION)
        await newcomer.enter(answer_within=ANSWER_WITHIN, poll_interval=POLL_INTERVAL)
        async with kept(newcomer):
            await seconds(ANSWER_WITHIN.total_seconds())
        assert record(fixture).last_modified > fixture.scene.account.now() - ANSWER_WITHIN

        with pytest.raises(DuplicateOwnerError, match="while this processor was away"):
            await fixture.refresh(holder, owns=True, is_trusted=True)
        assert fixture.incarnation() == "2"

    run(story)


def test_a_cycle_that_failed_before_it_answered_is_no_answer():
    """The holder read the newcomer's record and then the store failed, so the newcomer joined."""

    async def story(fixture):
        holder = await entered(fixture)
        newcomer = fixture.membership("2", mode=LeaseMode.SESSION)
        await newcomer.enter(answer_within=ANSWER_WITHIN, poll_interval=POLL_INTERVAL)
        async with kept(newcomer):
            await seconds(ANSWER_WITHIN.total_seconds())
            present = await fixture.store.list_members(fixture.scene.group)
            holder.note(present, asyncio.get_running_loop().time())
            await seconds(1)
            with pytest.raises(DuplicateOwnerError, match="while this processor was away"):
                await fixture.refresh(holder, owns=True, is_trusted=True)

        assert fixture.incarnation() == "2"

    run(story)


def test_a_holder_that_polls_stays_although_it_wrote_its_record_long_ago():
    """What counts is how long it read nothing."""

    async def story(fixture):
        holder = await entered(fixture)
        for _ in range(4):
            await seconds(10)
            await fixture.refresh(holder, is_trusted=True)
        newcomer = fixture.membership("2", mode=LeaseMode.SESSION)
        entering = asyncio.create_task(
            newcomer.enter(answer_within=ANSWER_WITHIN, poll_interval=POLL_INTERVAL)
        )
        await seconds(5)
        await fixture.refresh(holder, is_trusted=True)

        with pytest.raises(DuplicateOwnerError):
            await entering
        assert fixture.incarnation() == "1"

    run(story)

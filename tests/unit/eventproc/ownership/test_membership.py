"""Member records: written before the first plan, one processor for an id, renewed, deleted."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.errors import DuplicateOwnerError
from eventproc.logs import get_logger
from eventproc.models import LeaseMode, Member, MemberStatus, WriteOutcome
from eventproc.ownership.membership import FORGET_AFTER_EXPIRATIONS, Membership
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds

EXPIRATION = timedelta(seconds=60)
ANSWER_WITHIN = timedelta(seconds=12)
POLL_INTERVAL = timedelta(seconds=1)


class Slow(MemoryCheckpointStore):
    """Delays each write of a member record, its answer, and the answers of listings."""

    there_s = 0.0
    back_s = 0.0
    listing_back_s = 0.0

    async def announce_member(self, group, member):
        """Write late, and answer later."""
        await asyncio.sleep(self.there_s)
        result = await super().announce_member(group, member)
        await asyncio.sleep(self.back_s)
        return result

    async def list_members(self, group):
        """Show what is there now, later."""
        listed = await super().list_members(group)
        await asyncio.sleep(self.listing_back_s)
        return listed


class MembershipFixture:
    """A store, and processors with different owner ids or with one."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.store = MemoryCheckpointStore(self.scene.account)
        self.slow = Slow(self.scene.account)

    def membership(
        self,
        incarnation: str,
        owner_id: str = "me",
        *,
        is_slow: bool = False,
        mode: LeaseMode = LeaseMode.PARTITION,
    ) -> Membership:
        """The membership of one processor, which has not joined."""
        return Membership(
            self.slow if is_slow else self.store,
            self.scene.group,
            Member(owner_id=owner_id, incarnation=incarnation, lease_mode=mode),
            expiration=EXPIRATION,
            standby_timeout=EXPIRATION,
            on_fenced=lambda: None,
            on_lapsed=lambda: None,
            clock=asyncio.get_running_loop().time,
            log=get_logger("eventproc.test"),
        )

    async def entered(
        self, incarnation: str, owner_id: str = "me", *, is_slow: bool = False
    ) -> Membership:
        """The membership of a processor that has joined."""
        membership = self.membership(incarnation, owner_id, is_slow=is_slow)
        await membership.enter(answer_within=ANSWER_WITHIN, poll_interval=POLL_INTERVAL)
        return membership

    async def refresh(self, membership: Membership, *, owns=False, is_trusted=False) -> None:
        """Refresh with the current listing."""
        present = await self.store.list_members(self.scene.group)
        await membership.refresh(present, owns_something=owns, is_trusted=is_trusted)

    def member(self, owner_id: str = "me") -> Member | None:
        """The record."""
        return self.scene.account.records(self.scene.group).member_by_owner.get(owner_id)

    def incarnation(self) -> str | None:
        """The incarnation in the record of "me"."""
        member = self.member()
        return None if member is None else member.incarnation


def play(story) -> None:
    """Run a story on virtual time."""

    async def run() -> None:
        fixture = MembershipFixture()
        async with fixture.store, fixture.slow:
            await story(fixture)

    run_virtual(run())


def test_entering_writes_the_member_record():
    """Without waiting, if there is no fresh record under its owner id."""

    async def story(fixture):
        await fixture.entered("1")

        assert fixture.incarnation() == "1"
        assert asyncio.get_running_loop().time() < 1

    play(story)


def test_a_live_holder_answers_and_the_newcomer_is_refused():
    """The holder keeps its record."""

    async def story(fixture):
        holder = await fixture.entered("1")
        coming = asyncio.create_task(fixture.entered("2"))
        await seconds(5)
        await fixture.refresh(holder, owns=True, is_trusted=True)
        await asyncio.wait([coming])

        assert isinstance(coming.exception(), DuplicateOwnerError)
        assert fixture.incarnation() == "1"

    play(story)


def test_a_newcomer_with_a_used_id_waits_as_long_as_an_answer_may_take():
    """A dead holder does not answer, and the newcomer joins."""

    async def story(fixture):
        await fixture.entered("1")
        await fixture.entered("2")

        assert asyncio.get_running_loop().time() >= ANSWER_WITHIN.total_seconds()
        assert fixture.incarnation() == "2"

    play(story)


@pytest.mark.parametrize(("there_s", "back_s"), [(0, 0), (11, 0), (11, 11)])
def test_a_holder_has_its_whole_time_to_answer_after_a_newcomer_can_be_seen(there_s, back_s):
    """The wait counts from the answer to the newcomer's write, however late that came."""

    async def story(fixture):
        holder = await fixture.entered("1")
        fixture.slow.there_s, fixture.slow.back_s = there_s, back_s
        coming = asyncio.create_task(fixture.entered("2", is_slow=True))
        await seconds(there_s + ANSWER_WITHIN.total_seconds() - 0.5)
        assert fixture.incarnation() == "2"
        await fixture.refresh(holder, owns=True, is_trusted=True)
        await asyncio.wait([coming])

        assert isinstance(coming.exception(), DuplicateOwnerError)
        assert fixture.incarnation() == "1"

    play(story)


def test_a_newcomer_still_waits_if_the_answer_to_its_first_write_was_lost():
    """Its second attempt finds its own record, which has replaced the live holder's."""

    async def story(fixture):
        holder = await fixture.entered("1")
        announce = fixture.slow.announce_member
        unheard: list[object] = []

        async def lose_the_first(*arguments):
            result = await announce(*arguments)
            if unheard:
                return result
            unheard.append(result)
            return replace(result, outcome=WriteOutcome.UNKNOWN, member=None)

        fixture.slow.announce_member = lose_the_first
        coming = asyncio.create_task(fixture.entered("2", is_slow=True))
        await seconds(5)
        await fixture.refresh(holder, owns=True, is_trusted=True)
        await asyncio.wait([coming])

        assert isinstance(coming.exception(), DuplicateOwnerError)

    play(story)


def test_a_newcomer_decides_by_a_listing_requested_after_the_wait():
    """A listing that was requested earlier may not show an answer that came in time."""

    async def story(fixture):
        holder = await fixture.entered("1")
        coming = asyncio.create_task(fixture.entered("2", is_slow=True))
        await seconds(ANSWER_WITHIN.total_seconds() - 1.5)
        fixture.slow.listing_back_s = 3.0
        await seconds(1.2)
        await fixture.refresh(holder, owns=True, is_trusted=True)
        await asyncio.wait([coming])

        assert isinstance(coming.exception(), DuplicateOwnerError)
        assert fixture.incarnation() == "1"

    play(story)


def test_a_session_is_trusted_from_before_its_renewal_was_sent():
    """A processor that fences it counts from the write, however late the answer was."""

    async def story(fixture):
        membership = fixture.membership("1", is_slow=True, mode=LeaseMode.SESSION)
        fixture.slow.there_s = fixture.slow.back_s = 5.0
        await membership.enter(answer_within=ANSWER_WITHIN, poll_interval=POLL_INTERVAL)
        first_s = membership.trusted_until_s()
        keeping = asyncio.create_task(membership.keep())
        await seconds(25)
        keeping.cancel()

        assert (first_s, membership.trusted_until_s()) == (54.0, 20.0 + 54.0)

    play(story)


def test_a_processor_whose_leases_expired_yields_to_the_one_that_took_its_id():
    """It has no trusted lease, so it raises ``DuplicateOwnerError``."""

    async def story(fixture):
        sleeper = await fixture.entered("1")
        await seconds(2 * EXPIRATION.total_seconds())
        await fixture.entered("2")

        with pytest.raises(DuplicateOwnerError, match="while this processor was away"):
            await fixture.refresh(sleeper)
        assert fixture.incarnation() == "2"

    play(story)


def test_a_holder_that_answers_too_late_yields_although_it_trusts_its_leases():
    """The newcomer's wait is over and it has joined."""

    async def story(fixture):
        holder = await fixture.entered("1")
        await fixture.entered("2")
        await seconds(1)

        with pytest.raises(DuplicateOwnerError):
            await fixture.refresh(holder, owns=True, is_trusted=True)

    play(story)


def test_a_newcomer_yields_to_a_holder_that_writes_its_record_back():
    """The holder's answer was under way when the newcomer read the record for the last time."""

    async def story(fixture):
        holder = await fixture.entered("1")
        newcomer = await fixture.entered("2")
        await fixture.refresh(holder, owns=True, is_trusted=True)

        assert fixture.incarnation() == "1"
        with pytest.raises(DuplicateOwnerError):
            await fixture.refresh(newcomer, owns=True, is_trusted=True)

    play(story)


def test_of_two_processors_that_overwrite_each_other_exactly_one_yields():
    """Neither replaced the other when it joined, because the record had been deleted."""

    async def story(fixture):
        first = await fixture.entered("1")
        del fixture.scene.account.records(fixture.scene.group).member_by_owner["me"]
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

    play(story)


@pytest.mark.parametrize("owns", [False, True])
def test_only_a_processor_without_partitions_renews_its_member_record(owns):
    """The ownership records of the others show that they are alive."""

    async def story(fixture):
        membership = await fixture.entered("1")
        before = fixture.member()
        await seconds(EXPIRATION.total_seconds() / 2)
        await fixture.refresh(membership, owns=owns, is_trusted=True)

        assert (fixture.member() == before) is owns

    play(story)


def test_a_deleted_member_record_is_written_again():
    """Without it no member would hand a partition over to this processor."""

    async def story(fixture):
        membership = await fixture.entered("1")
        del fixture.scene.account.records(fixture.scene.group).member_by_owner["me"]
        await fixture.refresh(membership, owns=True, is_trusted=True)

        assert fixture.incarnation() == "1"

    play(story)


@pytest.mark.parametrize("say", ["leave", "mark_restarting"])
def test_a_change_of_status_is_written_although_the_etag_is_out_of_date(say):
    """Another write has changed the record meanwhile."""

    async def story(fixture):
        membership = await fixture.entered("1")
        await fixture.store.announce_member(fixture.scene.group, fixture.member())
        await getattr(membership, say)()
        said = {"leave": MemberStatus.LEAVING, "mark_restarting": MemberStatus.RESTARTING}

        assert fixture.member().status is said[say]

    play(story)


def test_only_old_member_records_of_processors_without_partitions_are_deleted():
    """An owner's member record shows that it hands over, however old it is."""

    async def story(fixture):
        mine = await fixture.entered("1")
        await fixture.entered("2", owner_id="owner")
        await fixture.entered("3", owner_id="dead")
        await seconds(FORGET_AFTER_EXPIRATIONS * EXPIRATION.total_seconds() + 1)
        await fixture.entered("4", owner_id="young")
        present = await fixture.store.list_members(fixture.scene.group)
        await mine.forget(present, ["owner"])

        left = {m.owner_id for m in (await fixture.store.list_members(fixture.scene.group)).members}
        assert left == {"me", "owner", "young"}

    play(story)


def test_a_duplicate_owner_is_forgotten_after_an_expiration():
    """Else every renewal of unknown outcome would cost the partition, for as long as it runs."""

    async def story(fixture):
        holder = await fixture.entered("1")
        coming = asyncio.create_task(fixture.entered("2"))
        await seconds(5)
        await fixture.refresh(holder, owns=True, is_trusted=True)
        await asyncio.wait([coming])
        assert isinstance(coming.exception(), DuplicateOwnerError)
        meanwhile = await holder.is_sole_holder()
        await seconds(EXPIRATION.total_seconds())

        assert not meanwhile
        assert await holder.is_sole_holder()

    play(story)

"""Presence alone: seen before the first plan, one name for one processor, kept alive, cleared."""

import asyncio
from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.errors import DuplicateOwnerError
from eventproc.logs import get_logger
from eventproc.membership import Member, MemberStatus
from eventproc.presence import FORGET_AFTER_EXPIRATIONS, Presence
from eventproc.testing.virtual_time import run_virtual
from tests.unit.eventproc.scene import Scene, seconds

EXPIRATION = timedelta(seconds=60)
ANSWER_WITHIN = timedelta(seconds=12)
LOOK_EVERY = timedelta(seconds=1)


class Hall:
    """A store, and processors that come under names of their own or under one."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.store = MemoryCheckpointStore(self.scene.account)

    def presence(self, incarnation: str, owner_id: str = "me") -> Presence:
        """One processor's presence."""
        return Presence(
            self.store,
            self.scene.group,
            Member(owner_id=owner_id, incarnation=incarnation),
            expiration=EXPIRATION,
            reserve_patience=EXPIRATION,
            on_declared_dead=lambda: None,
            on_lapsed=lambda: None,
            clock=asyncio.get_running_loop().time,
            log=get_logger("eventproc.test"),
        )

    async def entered(self, incarnation: str, owner_id: str = "me") -> Presence:
        """One that has come in."""
        presence = self.presence(incarnation, owner_id)
        await presence.enter(answer_within=ANSWER_WITHIN, look_every=LOOK_EVERY)
        return presence

    async def refresh(self, presence: Presence, *, owns=False, is_trusted=False) -> None:
        """Let one look at who is there."""
        present = await self.store.list_members(self.scene.group)
        await presence.refresh(present, owns_something=owns, is_trusted=is_trusted)

    def member(self, owner_id: str = "me") -> Member | None:
        """The record."""
        return self.scene.account.records(self.scene.group).member_by_owner.get(owner_id)

    def incarnation(self) -> str | None:
        """Whose record stands under the name."""
        member = self.member()
        return None if member is None else member.incarnation


def play(story) -> None:
    """Run a story on virtual time."""

    async def run() -> None:
        hall = Hall()
        async with hall.store:
            await story(hall)

    run_virtual(run())


def test_who_came_in_is_seen():
    """And at once, where there is no sign of life under its name."""

    async def story(hall):
        await hall.entered("1")

        assert hall.incarnation() == "1"
        assert asyncio.get_running_loop().time() < 1

    play(story)


def test_a_live_holder_answers_and_the_newcomer_is_refused():
    """The holder goes on as if nothing had been."""

    async def story(hall):
        holder = await hall.entered("1")
        coming = asyncio.create_task(hall.entered("2"))
        await seconds(5)
        await hall.refresh(holder, owns=True, is_trusted=True)
        await asyncio.wait([coming])

        assert isinstance(coming.exception(), DuplicateOwnerError)
        assert hall.incarnation() == "1"

    play(story)


def test_a_newcomer_waits_as_long_as_an_answer_may_take():
    """Nobody answers for a dead one."""

    async def story(hall):
        await hall.entered("1")
        await hall.entered("2")

        assert asyncio.get_running_loop().time() >= ANSWER_WITHIN.total_seconds()
        assert hall.incarnation() == "2"

    play(story)


def test_who_was_away_yields_to_who_took_its_name():
    """It holds nothing that it may trust, so it has nothing to lose."""

    async def story(hall):
        sleeper = await hall.entered("1")
        await seconds(2 * EXPIRATION.total_seconds())
        await hall.entered("2")

        with pytest.raises(DuplicateOwnerError, match="while this processor was away"):
            await hall.refresh(sleeper)
        assert hall.incarnation() == "2"

    play(story)


def test_who_answers_too_late_yields_although_it_trusts_its_leases():
    """The newcomer is in, and one of the two has to go."""

    async def story(hall):
        holder = await hall.entered("1")
        await hall.entered("2")
        await seconds(1)

        with pytest.raises(DuplicateOwnerError):
            await hall.refresh(holder, owns=True, is_trusted=True)

    play(story)


def test_who_came_in_over_one_that_comes_back_yields():
    """Its answer was on its way when the newcomer looked for the last time."""

    async def story(hall):
        holder = await hall.entered("1")
        newcomer = await hall.entered("2")
        await hall.refresh(holder, owns=True, is_trusted=True)

        assert hall.incarnation() == "1"
        with pytest.raises(DuplicateOwnerError):
            await hall.refresh(newcomer, owns=True, is_trusted=True)

    play(story)


def test_of_two_that_write_over_each_other_exactly_one_yields():
    """Neither saw the other come: somebody had deleted the record in between."""

    async def story(hall):
        first = await hall.entered("1")
        del hall.scene.account.records(hall.scene.group).member_by_owner["me"]
        second = await hall.entered("2")
        refused = []
        for _ in range(10):
            for presence in (first, second):
                if presence in refused:
                    continue
                try:
                    await hall.refresh(presence, owns=True, is_trusted=True)
                except DuplicateOwnerError:
                    refused.append(presence)

        assert len(refused) == 1

    play(story)


@pytest.mark.parametrize("owns", [False, True])
def test_only_who_owns_nothing_writes_its_presence_again(owns):
    """Ownership records speak for the others: a steady fleet pays nothing."""

    async def story(hall):
        presence = await hall.entered("1")
        before = hall.member()
        await seconds(EXPIRATION.total_seconds() / 2)
        await hall.refresh(presence, owns=owns, is_trusted=True)

        assert (hall.member() == before) is owns

    play(story)


def test_a_record_that_somebody_deleted_is_written_again():
    """Else nobody would hand anything over to it."""

    async def story(hall):
        presence = await hall.entered("1")
        del hall.scene.account.records(hall.scene.group).member_by_owner["me"]
        await hall.refresh(presence, owns=True, is_trusted=True)

        assert hall.incarnation() == "1"

    play(story)


@pytest.mark.parametrize("say", ["leave", "step_away"])
def test_what_it_says_of_itself_stands_in_the_record(say):
    """Although somebody touched the record meanwhile."""

    async def story(hall):
        presence = await hall.entered("1")
        await hall.store.announce_member(hall.scene.group, hall.member())
        await getattr(presence, say)()
        said = {"leave": MemberStatus.LEAVING, "step_away": MemberStatus.AWAY}

        assert hall.member().status is said[say]

    play(story)


def test_only_what_is_long_dead_and_owns_nothing_is_cleared_away():
    """An owner's record tells that it hands over, however old it is."""

    async def story(hall):
        mine = await hall.entered("1")
        await hall.entered("2", owner_id="owner")
        await hall.entered("3", owner_id="dead")
        await seconds(FORGET_AFTER_EXPIRATIONS * EXPIRATION.total_seconds() + 1)
        await hall.entered("4", owner_id="young")
        present = await hall.store.list_members(hall.scene.group)
        await mine.forget(present, ["owner"])

        left = {m.owner_id for m in (await hall.store.list_members(hall.scene.group)).members}
        assert left == {"me", "owner", "young"}

    play(story)


def test_a_contest_that_is_over_is_forgotten():
    """Else every renewal without an answer would cost the partition, for as long as it runs."""

    async def story(hall):
        holder = await hall.entered("1")
        coming = asyncio.create_task(hall.entered("2"))
        await seconds(5)
        await hall.refresh(holder, owns=True, is_trusted=True)
        await asyncio.wait([coming])
        assert isinstance(coming.exception(), DuplicateOwnerError)
        meanwhile = await holder.is_sole_holder()
        await seconds(EXPIRATION.total_seconds())

        assert not meanwhile
        assert await holder.is_sole_holder()

    play(story)

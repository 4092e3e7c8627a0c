"""Processors with one owner id or with several, of which only the member records matter."""

import asyncio
from datetime import timedelta

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._base.logs import get_logger
from eventproc._core.ownership.members import member_step
from eventproc._group.answers import Answers
from eventproc._group.membership import Membership
from eventproc.models import Member
from tests.scenarios.group_setup import Setup
from tests.unit.eventproc._core.ownership.listings import RULES

EXPIRATION = timedelta(seconds=60)
ANSWER_WITHIN = timedelta(seconds=12)
POLL_INTERVAL = timedelta(seconds=1)


class SlowStore(MemoryCheckpointStore):
    """Delays each write of a member record, its answer, and the answers of listings."""

    request_s = 0.0
    answer_s = 0.0
    listing_answer_s = 0.0

    async def announce_member(self, group, member):
        """Write after ``request_s``, and answer after ``answer_s`` more."""
        await asyncio.sleep(self.request_s)
        result = await super().announce_member(group, member)
        await asyncio.sleep(self.answer_s)
        return result

    async def list_members(self, group):
        """Return the records as they were at the request."""
        listed = await super().list_members(group)
        await asyncio.sleep(self.listing_answer_s)
        return listed


class MembershipFixture:
    """A store, and processors with different owner ids or with one."""

    def __init__(self) -> None:
        self.setup = Setup()
        self.store = MemoryCheckpointStore(self.setup.account)
        self.slow = SlowStore(self.setup.account)

    @classmethod
    async def opened(cls) -> "MembershipFixture":
        """Return one whose stores are open."""
        made = cls()
        await made.store.open()
        await made.slow.open()
        return made

    def membership(
        self,
        incarnation: str,
        owner_id: str = "me",
        *,
        is_slow: bool = False,
    ) -> Membership:
        """The membership of one processor, which has not joined."""
        return Membership(
            self.slow if is_slow else self.store,
            self.setup.group,
            Member(owner_id=owner_id, incarnation=incarnation),
            answers=Answers(asyncio.get_running_loop().time),
            expiration=EXPIRATION,
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
        """Carry out what is decided on a new listing."""
        clock = asyncio.get_running_loop().time
        asked_at_s = clock()
        present = await self.store.list_members(self.setup.group)
        membership.note(present, asked_at_s)
        step = member_step(
            membership.own,
            present,
            RULES,
            clock(),
            asked_at_s=asked_at_s,
            owns_something=owns,
            is_trusted=is_trusted,
        )
        await membership.carry_out(step, asked_at_s)

    async def answered(
        self, holder: Membership, entering: "asyncio.Task[Membership]"
    ) -> BaseException | None:
        """Let the holder write its record back; return what the newcomer's start raises."""
        await self.refresh(holder, owns=True, is_trusted=True)
        await asyncio.wait([entering])
        return entering.exception()

    def member(self, owner_id: str = "me") -> Member | None:
        """The member record of this owner id."""
        return self.setup.account.records(self.setup.group).member_by_owner.get(owner_id)

    def incarnation(self) -> str | None:
        """The incarnation in the member record of "me"."""
        member = self.member()
        return None if member is None else member.incarnation

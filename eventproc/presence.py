"""This processor's presence in the group: being seen before owning anything, and one id for one.

A newcomer writes its presence before its first plan, so that everybody counts it. While it owns
something its ownership records speak for it, and the presence record is not written again: a
steady fleet pays nothing for it.

In session mode the presence record is what keeps every lease of the processor alive. It is renewed
all the time, and trusted like a lease (``core/session_lease.py``).

Two processors with one ``owner_id`` would each take the other's leases for their own. So a
newcomer that finds signs of life under its id writes its own incarnation into the presence record
and waits for longer than a look at the group takes. A live holder of the id sees the strange
incarnation and writes its own back: then the newcomer is refused. Nobody answers for a dead one.

A holder that was away for longer than a newcomer waits comes too late: it finds that the newcomer
is in, and yields. Where both believe to hold the id, exactly one of them yields.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from eventproc.contest import Contest
from eventproc.core.lease import (
    is_alive,
    present_members,
    renewal_due_at_s,
    trusted_until_s,
)
from eventproc.errors import (
    DuplicateOwnerError,
    StoreError,
    StoreUnavailableError,
)
from eventproc.logs import Logger
from eventproc.membership import LeaseMode, Member, MembershipSnapshot, MemberStatus
from eventproc.models import ConsumerGroup, OwnershipSnapshot, WriteOutcome
from eventproc.ports import CheckpointStore

ATTEMPTS_MAX: Final = 5
"""At a write that others may contend for; each attempt reads again."""

CHECKS_PER_EXPIRATION: Final = 24
"""How often in an expiration to look whether the session is to be renewed."""

FORGET_AFTER_EXPIRATIONS: Final = 10
"""A presence record that is this old, of a processor that owns nothing, is cleared away."""


class Presence:
    """Writes and defends one presence record. Lives on the control side."""

    def __init__(
        self,
        store: CheckpointStore,
        group: ConsumerGroup,
        member: Member,
        *,
        expiration: timedelta,
        reserve_patience: timedelta,
        clock: Callable[[], float],
        on_declared_dead: Callable[[], None],
        on_lapsed: Callable[[], None],
        log: Logger,
    ) -> None:
        """Begin unseen.

        *on_declared_dead* is told that whatever was owned is lost; *on_lapsed*, that the session
        is trusted again after it was not: what was owned must be looked at before it is.
        """
        self._store = store
        self._group = group
        self._member = member
        self._expiration = expiration
        self._reserve_patience = reserve_patience
        self._clock = clock
        self._on_declared_dead = on_declared_dead
        self._on_lapsed = on_lapsed
        self._log = log
        self._is_withdrawn = False
        self._is_failing = False
        self._entered_at_s = clock()
        self._sent_at_s = float("-inf")
        self._answer_within: timedelta | None = None
        self._contest = Contest(member.incarnation, expiration=expiration, clock=clock)

    async def enter(self, *, answer_within: timedelta, look_every: timedelta) -> None:
        """Be seen by everybody; return when the ``owner_id`` is known to be free.

        Args:
            answer_within: How long a live holder of the same id may take to answer.
            look_every: How often to look for the answer.

        Raises:
            DuplicateOwnerError: a live processor answered.
            StoreUnavailableError: presence could not be written.
        """
        self._answer_within = answer_within
        self._is_withdrawn = False
        self._entered_at_s = self._clock()
        is_contested = await self._write_first()
        if self._member.status is MemberStatus.RESERVE:
            self._log.info("reserve_entered", generation=self._member.generation)
        if not is_contested:
            return
        self._log.info("owner_id_recovering", answer_within_s=answer_within.total_seconds())
        until_s = self._clock() + answer_within.total_seconds()
        while True:
            await asyncio.sleep(look_every.total_seconds())
            try:
                mine = self._find(await self._store.list_members(self._group))
            except StoreError:
                if self._clock() > until_s + answer_within.total_seconds():
                    raise
                continue
            if mine is not None and mine.incarnation != self._member.incarnation:
                raise self._duplicate("another live processor answered")
            if self._clock() >= until_s:
                return

    async def _write_first(self) -> bool:
        """Write the record; return whether there was a sign of life under this id."""
        is_contested = False
        for _ in range(ATTEMPTS_MAX):
            present = await self._store.list_members(self._group)
            owned = await self._store.list_ownership(self._group)
            mine = self._find(present)
            # An attempt before this one may have written without being told, over a sign of life.
            is_contested = is_contested or self._shows_life(mine, present, owned)
            if mine is not None and mine.incarnation != self._member.incarnation:
                self._contest.enter_over(mine.incarnation)
            self._member = replace(self._member, status=self._first_status(present, owned))
            if await self._write(replace(self._member, etag=mine.etag if mine else None)):
                return is_contested
        raise StoreUnavailableError(
            f"presence of {self._member.owner_id!r} could not be written in {ATTEMPTS_MAX} attempts"
        )

    def _shows_life(
        self, mine: Member | None, present: MembershipSnapshot, owned: OwnershipSnapshot
    ) -> bool:
        if mine is not None and (
            mine.incarnation == self._member.incarnation or mine.status is MemberStatus.AWAY
        ):
            return False
        if mine is not None and is_alive(mine, present, self._expiration):
            return True
        return any(
            ownership.owner_id == self._member.owner_id
            and is_alive(ownership, owned, self._expiration)
            for ownership in owned.ownerships
        )

    def _first_status(self, present: MembershipSnapshot, owned: OwnershipSnapshot) -> MemberStatus:
        """In reserve, if this processor owns nothing and somebody is there to be replaced."""
        owners = {
            ownership.owner_id
            for ownership in owned.ownerships
            if ownership.owner_id is not None and is_alive(ownership, owned, self._expiration)
        }
        members = present_members(
            present.members,
            as_of=present.as_of,
            resolution=present.resolution,
            expiration=self._expiration,
            owners=owners,
        )
        is_replacing = self._member.owner_id not in owners and self._is_replacing(members)
        return MemberStatus.RESERVE if is_replacing else MemberStatus.ACTIVE

    async def refresh(
        self, present: MembershipSnapshot, *, owns_something: bool, is_trusted: bool
    ) -> None:
        """Keep the record alive while nothing is owned, and defend it.

        Args:
            present: The newest listing.
            owns_something: Whether ownership records speak for this processor already.
            is_trusted: Whether any lease of this processor may still be trusted.

        Raises:
            DuplicateOwnerError: this processor was away for longer than the expiration, and
                another one has taken its id since.
        """
        mine = self._find(present)
        now_s = self._clock()
        if mine is None and self.is_session:
            await self._beat()  # It may be there by now; if not, all that it kept alive is lost.
        elif mine is None:
            await self._write(replace(self._member, etag=None))
        elif mine.incarnation != self._member.incarnation:
            is_stale = now_s > trusted_until_s(self._sent_at_s, self._expiration)
            if (is_stale and not is_trusted) or self._contest.is_won_by(
                mine, present, self._answer_within
            ):
                raise self._duplicate("it was taken while this processor was away")
            self._log.warning("owner_id_contested", incarnation=mine.incarnation)
            await self._write(replace(self._member, etag=mine.etag))
        elif self.is_session:
            if mine.status is not self._member.status:
                await self._revive(mine)
        else:
            self._member = replace(self._member, etag=mine.etag)
            is_due = renewal_due_at_s(self._sent_at_s, self._expiration) <= now_s
            if mine.status is not self._member.status or (is_due and not owns_something):
                await self._write(self._member)

    # Session mode.

    @property
    def is_session(self) -> bool:
        """Whether this record keeps the leases alive."""
        return self._member.lease_mode is LeaseMode.SESSION

    def trusted_until_s(self) -> float:
        """Until when, on this processor's clock, the session may be trusted."""
        return trusted_until_s(self._sent_at_s, self._expiration)

    async def keep(self) -> None:
        """Renew the session for ever, at a third of its life; without sessions do nothing."""
        pause_s = self._expiration.total_seconds() / CHECKS_PER_EXPIRATION
        while self.is_session:
            if renewal_due_at_s(self._sent_at_s, self._expiration) <= self._clock():
                await self._beat()
            await asyncio.sleep(pause_s)

    async def _beat(self) -> None:
        """Renew the session; where that fails, find out why, and renew what there is."""
        is_done = self._is_withdrawn or await self._write(self._member)
        if not is_done:
            try:
                mine = self._find(await self._store.list_members(self._group))
            except StoreError:
                mine = self._member
            else:
                is_done = await self._revive(mine)
        if self._is_failing is is_done:
            self._is_failing = not is_done
            if is_done:
                self._log.info("session_renewal_recovered")
            else:
                self._log.warning("session_renewal_failed")

    async def _revive(self, mine: Member | None) -> bool:
        """Renew the record that was found; who was declared dead begins with nothing."""
        if self._is_withdrawn or (mine and mine.incarnation != self._member.incarnation):
            return False
        if self.is_session and (mine is None or mine.status is MemberStatus.DEAD):
            self._log.error("declared_dead")
            self._on_declared_dead()
        return await self._write(replace(self._member, etag=mine.etag if mine else None))

    # Reserve, leaving, and coming back.

    async def end_reserve(self, members: Iterable[Member], *, has_settled: bool) -> None:
        """Take part from now on, if this processor waits in reserve and need not any longer.

        Args:
            members: Those that are there.
            has_settled: Whether it has taken up what a leaver left to it.
        """
        if self._member.status is not MemberStatus.RESERVE:
            return
        is_over = self._clock() - self._entered_at_s > self._reserve_patience.total_seconds()
        if has_settled or is_over or not self._is_replacing(members):
            self._log.info("reserve_ended", has_replaced=has_settled)
            self._member = replace(self._member, status=MemberStatus.ACTIVE)
            await self._write(self._member)

    def _is_replacing(self, members: Iterable[Member]) -> bool:
        """Whether somebody of another generation is there, who is going to be replaced."""
        return bool(self._member.generation) and any(
            member.generation != self._member.generation
            and member.owner_id != self._member.owner_id
            and member.status in {MemberStatus.ACTIVE, MemberStatus.LEAVING}
            for member in members
        )

    async def is_sole_holder(self) -> bool:
        """Whether nobody else has acted under this ``owner_id``, as far as the records tell.

        Raises:
            StoreUnavailableError: nobody knows.
        """
        if self._contest.is_recent:
            return False
        mine = self._find(await self._store.list_members(self._group))
        return mine is not None and mine.incarnation == self._member.incarnation

    async def leave(self) -> None:
        """Tell everybody that this processor goes, so that no plan gives it anything."""
        await self._change_to(MemberStatus.LEAVING)

    async def step_away(self) -> None:
        """Tell everybody that this processor has stopped, and comes back under its id."""
        await self._change_to(MemberStatus.AWAY)

    async def _change_to(self, status: MemberStatus) -> None:
        self._member = replace(self._member, status=status)
        for _ in range(ATTEMPTS_MAX):
            if await self._write(self._member):
                return
            mine = self._find(await self._store.list_members(self._group))
            is_other = mine is not None and mine.incarnation != self._member.incarnation
            if is_other or await self._revive(mine):
                return

    async def withdraw(self) -> None:
        """Take the record away."""
        self._is_withdrawn = True
        await self._store.withdraw_member(self._group, self._member)

    async def forget(self, present: MembershipSnapshot, owners: Iterable[str]) -> None:
        """Clear away the records of processors that are long gone."""
        owning = {self._member.owner_id, *owners}
        long = FORGET_AFTER_EXPIRATIONS * self._expiration
        for member in present.members:
            if (
                member.owner_id not in owning
                and member.last_modified is not None
                and present.as_of is not None
                and present.as_of - member.last_modified > long
            ):
                await self._store.withdraw_member(self._group, member)

    def _find(self, present: MembershipSnapshot) -> Member | None:
        for member in present.members:
            if member.owner_id == self._member.owner_id:
                return member
        return None

    async def _write(self, member: Member) -> bool:
        """Write it; remember the etag; return whether it is known to stand."""
        sent_at_s = self._clock()
        result = await self._store.announce_member(self._group, member)
        if result.outcome is not WriteOutcome.WON or result.member is None:
            return False
        self._member = replace(self._member, etag=result.member.etag)
        if self.is_session and self._clock() > self.trusted_until_s():
            self._on_lapsed()
        self._sent_at_s = sent_at_s
        return True

    def _duplicate(self, what: str) -> DuplicateOwnerError:
        return DuplicateOwnerError(
            f"owner_id {self._member.owner_id!r} belongs to another live processor of the group: "
            f"{what}; give every processor an owner_id of its own, or none"
        )

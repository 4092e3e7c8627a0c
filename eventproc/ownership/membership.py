"""This processor's member record: it joins the group, and makes sure that its owner id is unique.

A processor writes its member record before it computes its first plan, so that the others count
it. While it owns partitions, its ownership records show that it is alive, and the member record is
not renewed: a balanced group writes no member records.

With session leases the member record keeps every lease of the processor alive. It is then renewed
all the time, and trusted like a lease (``core/session_lease.py``).

Two processors with one ``owner_id`` would each consider the other's leases their own. So a
processor that starts and finds a fresh record under its id writes its own incarnation into the
member record, and waits for longer than a cycle takes. A live holder of the id reads the other
incarnation in its next cycle and writes its own back; the start then fails. If the holder is dead
the record stays as it is, and the start goes on.

A holder that could not reach the store for longer than that wait is too late: it finds that the
other processor has joined, and yields. If both consider the id theirs, exactly one yields
(``duplicate_owner.py``).
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from eventproc.core.lease import (
    is_alive,
    present_members,
    renewal_due_at_s,
    trusted_until_s,
)
from eventproc.errors import (
    DuplicateOwnerError,
    StoreError,
    StoreRejectedError,
    StoreUnavailableError,
)
from eventproc.logs import Logger
from eventproc.models import (
    ConsumerGroup,
    LeaseMode,
    Member,
    MembershipSnapshot,
    MemberStatus,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.ownership.duplicate_owner import DuplicateOwnerArbiter
from eventproc.ports import CheckpointStore

ATTEMPTS_MAX: Final = 5
"""How often to try a write that may conflict with another processor's; each attempt reads first."""

CHECKS_PER_EXPIRATION: Final = 24
"""How often in an expiration to check whether the session is due for renewal."""

FORGET_AFTER_EXPIRATIONS: Final = 10
"""The age, in expirations, at which the member record of a processor without partitions is
deleted."""


class Membership:
    """Writes this processor's member record, and keeps other incarnations out of it.

    It runs on the store's loop.
    """

    def __init__(
        self,
        store: CheckpointStore,
        group: ConsumerGroup,
        member: Member,
        *,
        expiration: timedelta,
        standby_timeout: timedelta,
        clock: Callable[[], float],
        on_fenced: Callable[[], None],
        on_lapsed: Callable[[], None],
        log: Logger,
    ) -> None:
        """Write nothing yet: ``enter`` does.

        *on_fenced* is called when another processor has fenced this one: all leases are lost.
        *on_lapsed* is called when the session is renewed after it was not trusted: each ownership
        record must be verified before its lease is trusted again.
        """
        self._store = store
        self._group = group
        self._member = member
        self._expiration = expiration
        self._standby_timeout = standby_timeout
        self._clock = clock
        self._on_fenced = on_fenced
        self._on_lapsed = on_lapsed
        self._log = log
        self._is_withdrawn = False
        self._is_failing = False
        self._entered_at_s = clock()
        self._sent_at_s = float("-inf")
        self._write_error: StoreError | None = None
        """The error of the newest write, if its outcome is unknown."""
        self._answer_within: timedelta | None = None
        self._arbiter = DuplicateOwnerArbiter(
            member.incarnation, expiration=expiration, clock=clock
        )

    async def enter(self, *, answer_within: timedelta, poll_interval: timedelta) -> None:
        """Write the member record; return when no other live processor uses the ``owner_id``.

        Args:
            answer_within: How long a live holder of the same id may take to write its own
                incarnation back.
            poll_interval: How often to read the record meanwhile.

        Raises:
            DuplicateOwnerError: a live processor wrote its own incarnation back.
            StoreRejectedError: the store refuses the record permanently.
            StoreUnavailableError: the record could not be written.
        """
        self._answer_within = answer_within
        self._is_withdrawn = False
        self._entered_at_s = self._clock()
        is_contested = await self._write_first()
        if self._member.status is MemberStatus.STANDBY:
            self._log.info("standby_started", deployment_id=self._member.deployment_id)
        if not is_contested:
            return
        self._log.info("owner_id_wait_started", answer_within_s=answer_within.total_seconds())
        until_s = self._clock() + answer_within.total_seconds()
        while True:
            await asyncio.sleep(poll_interval.total_seconds())
            asked_at_s = self._clock()  # The listing may not show what is written after this.
            try:
                mine = self._find(await self._store.list_members(self._group))
            except StoreError:
                if asked_at_s > until_s + answer_within.total_seconds():
                    raise
                continue
            if mine is not None and mine.incarnation != self._member.incarnation:
                raise self._duplicate("another live processor answered")
            if asked_at_s >= until_s:
                return

    async def _write_first(self) -> bool:
        """Write the record; return whether another live processor may have this id."""
        is_contested = False
        for _ in range(ATTEMPTS_MAX):
            present = await self._store.list_members(self._group)
            owned = await self._store.list_ownership(self._group)
            mine = self._find(present)
            # An earlier attempt of unknown outcome may have overwritten a live holder's record.
            is_contested = is_contested or self._shows_life(mine, present, owned)
            if mine is not None and mine.incarnation != self._member.incarnation:
                self._arbiter.note_replaced(mine.incarnation)
            self._member = replace(self._member, status=self._first_status(present, owned))
            if await self._write(replace(self._member, etag=mine.etag if mine else None)):
                return is_contested
            if isinstance(self._write_error, StoreRejectedError):
                raise self._write_error
        raise StoreUnavailableError(
            f"the member record of {self._member.owner_id!r} could not be written in "
            f"{ATTEMPTS_MAX} attempts: {self._write_error or 'other processors wrote it'}"
        )

    def _shows_life(
        self, mine: Member | None, present: MembershipSnapshot, owned: OwnershipSnapshot
    ) -> bool:
        if mine is not None and (
            mine.incarnation == self._member.incarnation or mine.status is MemberStatus.RESTARTING
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
        """Standby, if this processor owns nothing and another deployment's members are live."""
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
        return MemberStatus.STANDBY if is_replacing else MemberStatus.ACTIVE

    async def refresh(
        self, present: MembershipSnapshot, *, owns_something: bool, is_trusted: bool
    ) -> None:
        """Renew the record while nothing is owned, and restore it if another processor changed it.

        Args:
            present: The newest listing.
            owns_something: Whether this processor has ownership records, which show that it is
                alive.
            is_trusted: Whether any lease of this processor may still be trusted.

        Raises:
            DuplicateOwnerError: this processor could not renew for longer than the expiration,
                and another one has taken its id since.
        """
        mine = self._find(present)
        now_s = self._clock()
        if mine is None and self.is_session:
            await self._renew_session()  # Reads again; if the record is gone, all leases are lost.
        elif mine is None:
            await self._write(replace(self._member, etag=None))
        elif mine.incarnation != self._member.incarnation:
            is_stale = now_s > trusted_until_s(self._sent_at_s, self._expiration)
            if (is_stale and not is_trusted) or self._arbiter.must_yield_to(
                mine, present, self._answer_within
            ):
                raise self._duplicate("it was taken while this processor was away")
            self._log.warning("duplicate_owner_detected", incarnation=mine.incarnation)
            await self._write(replace(self._member, etag=mine.etag))
        elif self.is_session:
            if mine.status is not self._member.status:
                await self._rewrite(mine)
        else:
            self._member = replace(self._member, etag=mine.etag)
            is_due = renewal_due_at_s(self._sent_at_s, self._expiration) <= now_s
            if mine.status is not self._member.status or (is_due and not owns_something):
                await self._write(self._member)

    # Session leases.

    @property
    def is_session(self) -> bool:
        """Whether this record keeps all leases of the processor alive."""
        return self._member.lease_mode is LeaseMode.SESSION

    def trusted_until_s(self) -> float:
        """Until when, on this processor's clock, the session may be trusted."""
        return trusted_until_s(self._sent_at_s, self._expiration)

    async def keep(self) -> None:
        """Renew the session at a third of its life, until cancelled; nothing without sessions."""
        pause_s = self._expiration.total_seconds() / CHECKS_PER_EXPIRATION
        while self.is_session:
            if renewal_due_at_s(self._sent_at_s, self._expiration) <= self._clock():
                await self._renew_session()
            await asyncio.sleep(pause_s)

    async def _renew_session(self) -> None:
        """Renew the session; if the write fails, read the record and renew what is there."""
        is_done = self._is_withdrawn or await self._write(self._member)
        if not is_done:
            try:
                mine = self._find(await self._store.list_members(self._group))
            except StoreError:
                mine = self._member
            else:
                is_done = await self._rewrite(mine)
        if self._is_failing is is_done:
            self._is_failing = not is_done
            if is_done:
                self._log.info("session_renewal_recovered")
            else:
                self._log.warning("session_renewal_failed")

    async def _rewrite(self, mine: Member | None) -> bool:
        """Write over the record *mine* that was read; return whether the write was confirmed.

        With session leases, a record that is gone or has the status *dead* means that this
        processor was fenced: all its leases are lost first.
        """
        if self._is_withdrawn or (mine and mine.incarnation != self._member.incarnation):
            return False
        if self.is_session and (mine is None or mine.status is MemberStatus.DEAD):
            self._log.error("processor_fenced")
            self._on_fenced()
        return await self._write(replace(self._member, etag=mine.etag if mine else None))

    # Changes of status.

    async def end_standby(self, members: Iterable[Member], *, has_replaced: bool) -> None:
        """Change from standby to active, if there is nothing left to wait for.

        That is so if this processor has replaced another one, if ``standby_timeout`` has passed,
        or if no live member belongs to another deployment.

        Args:
            members: The live members.
            has_replaced: Whether it serves the partitions that a leaving member left to it.
        """
        if self._member.status is not MemberStatus.STANDBY:
            return
        is_over = self._clock() - self._entered_at_s > self._standby_timeout.total_seconds()
        if has_replaced or is_over or not self._is_replacing(members):
            self._log.info("standby_ended", has_replaced=has_replaced)
            self._member = replace(self._member, status=MemberStatus.ACTIVE)
            await self._write(self._member)

    def _is_replacing(self, members: Iterable[Member]) -> bool:
        """Whether a member of another deployment is live, which this one can replace."""
        return bool(self._member.deployment_id) and any(
            member.deployment_id != self._member.deployment_id
            and member.owner_id != self._member.owner_id
            and member.status in {MemberStatus.ACTIVE, MemberStatus.LEAVING}
            for member in members
        )

    async def is_sole_holder(self) -> bool:
        """Whether, by the records, no other processor has written under this ``owner_id``.

        Raises:
            StoreUnavailableError: the member records could not be read.
        """
        if self._arbiter.is_recent:
            return False
        mine = self._find(await self._store.list_members(self._group))
        return mine is not None and mine.incarnation == self._member.incarnation

    async def leave(self) -> None:
        """Write the status *leaving*, so that no plan gives this processor a partition."""
        await self._change_to(MemberStatus.LEAVING)

    async def mark_restarting(self) -> None:
        """Write the status *restarting*: this processor has stopped and will start again."""
        await self._change_to(MemberStatus.RESTARTING)

    async def _change_to(self, status: MemberStatus) -> None:
        self._member = replace(self._member, status=status)
        for _ in range(ATTEMPTS_MAX):
            if await self._write(self._member):
                return
            mine = self._find(await self._store.list_members(self._group))
            is_other = mine is not None and mine.incarnation != self._member.incarnation
            if is_other or await self._rewrite(mine):
                return

    async def withdraw(self) -> None:
        """Delete the record."""
        self._is_withdrawn = True
        await self._store.withdraw_member(self._group, self._member)

    async def forget(self, present: MembershipSnapshot, owners: Iterable[str]) -> None:
        """Delete the records of processors that ended long ago and own nothing."""
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
        """Write the record and remember its ETag; return whether the write was confirmed."""
        sent_at_s = self._clock()
        result = await self._store.announce_member(self._group, member)
        self._write_error = result.error
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
            f"{what}; give every processor an owner_id of its own, or leave owner_id unset"
        )

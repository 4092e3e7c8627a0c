"""This processor's member record: it joins the group, and makes sure that its owner id is unique.

A processor writes its member record before it computes its first plan, so that the plans of the
others include it. While it owns partitions, its ownership records show that it is alive, so the
member record is renewed only after ``RENEW_AFTER_EXPIRATIONS``.

Two processors with one ``owner_id`` would each consider the other's leases their own. So a
processor that starts and finds a fresh record under its id writes its own incarnation into the
member record, and waits for longer than a cycle takes. A live holder of the id reads the other
incarnation in its next cycle and writes its own back; the start then fails. If the holder is dead,
the record stays as it is, and the start continues.

A holder that was away for longer than that wait is too late: the other processor has joined, and
the holder yields. The age of the other's record shows this; or, if the other one renews its record,
for how long the holder has acted on nothing that it read. If both consider the id theirs, exactly
one yields (``_core/ownership/members.py``).
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final, TypeAlias

from eventproc._base.logs import Logger
from eventproc._base.version import __version__
from eventproc._core.ownership.liveness import fresh_owners, live_members, recorded_owners
from eventproc._core.ownership.members import (
    MemberStep,
    OwnRecord,
    find,
    first_status,
    is_contested,
)
from eventproc._core.placement.placement import MemberFacts, ordinal_in
from eventproc._group.answers import Answers
from eventproc._group.config import GroupConfig
from eventproc.errors import DuplicateOwnerError, StoreError, StoreUnavailableError
from eventproc.models import (
    ConsumerGroup,
    Member,
    MemberResult,
    MembershipSnapshot,
    MemberStatus,
    OffsetFormat,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore

ATTEMPTS_MAX: Final = 5
"""How often to try a write that may conflict with another processor's; each attempt reads first."""

RecordsCheck: TypeAlias = Callable[[OwnershipSnapshot, MembershipSnapshot], None]
"""Raises an error if this processor cannot join a group with these records."""


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
        answers: Answers,
        expiration: timedelta,
        clock: Callable[[], float],
        log: Logger,
    ) -> None:
        """Write nothing yet: ``enter`` does."""
        self._answers = answers
        self._store = store
        self._group = group
        self._expiration = expiration
        self._clock = clock
        self._log = log
        self._is_withdrawn = False
        self._is_first = False
        """Whether it has written its record, and found none of another process with its owner id.
        """
        self._writing = asyncio.Lock()
        self._changed_at_s = float("-inf")
        """When a change of status was first sent. A listing requested before may not show it."""

        self.own = OwnRecord(member=member, entered_at_s=clock())
        """What this processor knows of its record: the input of ``member_step``."""

    async def enter(
        self,
        *,
        answer_within: timedelta,
        poll_interval: timedelta,
        check: RecordsCheck = lambda _owned, _present: None,
    ) -> None:
        """Write the member record; return when no other live processor uses the ``owner_id``.

        Args:
            answer_within: How long a live holder of the same id may take to write its own
                incarnation back.
            poll_interval: How often to read the record meanwhile.
            check: Called with the listings that are read before the first write; if it raises,
                nothing is written.

        Raises:
            DuplicateOwnerError: a live processor wrote its own incarnation back, or wrote first
                in every attempt.
            StoreError: the store refuses the record, and an operator has to act (``is_final``).
            StoreUnavailableError: the record could not be written.
        """
        self._is_withdrawn = False
        self.own = replace(self.own, entered_at_s=self._clock(), answer_within=answer_within)
        is_taken = await self._write_first(check)
        if self.own.member.status is MemberStatus.STANDBY:
            self._log.info("standby_started", deployment_id=self.own.member.deployment_id)
        if not is_taken:
            return
        self._log.info("owner_id_wait_started", answer_within_s=answer_within.total_seconds())
        until_s = self._clock() + answer_within.total_seconds()
        while True:
            await asyncio.sleep(poll_interval.total_seconds())
            asked_at_s = self._clock()  # The listing may not show what is written after this.
            try:
                present = await self._store.list_members(self._group)
                self._answers.note_answer()
            except StoreError:
                if asked_at_s > until_s + answer_within.total_seconds():
                    raise
                continue
            mine = self._mine(present)
            if self.own.is_rival(mine):
                raise self._duplicate("another live processor answered")
            if asked_at_s >= until_s:
                return

    async def retreat(self) -> None:
        """Delete the record after a start that failed: others would hand partitions over to it.

        The record stays if another process has, or had, this owner id. It may be live and about to
        write its own record back, or have left ownership records, which would then look foreign.
        """
        self._is_withdrawn = True  # If the start was cancelled, ``enter`` still runs.
        if self._is_first:
            await self.withdraw()

    async def _write_first(self, check: RecordsCheck) -> bool:
        """Write the record; return whether another live processor may have this id."""
        is_taken, result = False, MemberResult(outcome=WriteOutcome.UNKNOWN)
        for number in range(ATTEMPTS_MAX):
            present = await self._store.list_members(self._group)
            owned = await self._store.list_ownership(self._group)
            if self._is_withdrawn:
                raise StoreUnavailableError("the start was cancelled")
            if number == 0:
                check(owned, present)
            owners = fresh_owners(owned, self._expiration).values()
            mine = self._mine(present)
            # An earlier attempt of unknown outcome may have overwritten a live holder's record.
            is_taken = is_taken or is_contested(self.own.member, present, owners, self._expiration)
            if mine is not None and self.own.is_rival(mine):
                rivals = self.own.rivals.displacing(mine.incarnation)
                self.own = replace(self.own, rivals=rivals)
            recorded = recorded_owners(owned).values()
            self._is_first = not is_taken and self.own.member.owner_id not in recorded
            members = live_members(present, owners, self._expiration)
            status = first_status(self.own.member, members, owners)
            self.own = replace(self.own, member=replace(self.own.member, status=status))
            result = await self._write_over(mine)
            if result.outcome is WriteOutcome.WON:
                return is_taken
            if result.error is not None and result.error.is_final:
                raise result.error
        if result.outcome is WriteOutcome.LOST:
            raise self._duplicate(f"it wrote the member record in each of {ATTEMPTS_MAX} attempts")
        raise StoreUnavailableError(
            f"the member record of {self.own.member.owner_id!r} could not be written in "
            f"{ATTEMPTS_MAX} attempts: {result.error}"
        )

    # The cycle.

    def note(self, present: MembershipSnapshot, asked_at_s: float) -> None:
        """Note what a listing that was requested at *asked_at_s* shows of the own record."""
        known_at_s = max(self.own.entered_at_s, self.own.sent_at_s, self.own.acted_at_s)
        self.own = replace(self.own, silent_s=asked_at_s - known_at_s)
        mine = self._mine(present)
        if mine is None:
            return
        if self.own.is_rival(mine):
            rivals = self.own.rivals.meeting(mine, self._clock())
            self.own = replace(self.own, rivals=rivals)
        elif asked_at_s >= self.own.answered_at_s:
            self.own = replace(self.own, member=replace(self.own.member, etag=mine.etag))

    def note_load(self, load: str) -> None:
        """Set the partitions' loads in the record; the next renewal writes them."""
        self.own = replace(self.own, member=replace(self.own.member, load=load))

    async def carry_out(self, step: MemberStep, asked_at_s: float) -> bool:
        """Carry out the step; return whether the stored record is now as it should be.

        This writes nothing if a change of status was sent after the listing was requested, at
        *asked_at_s*: the two writes would conflict.

        Raises:
            DuplicateOwnerError: another processor has this owner id.
        """
        self.own = replace(self.own, acted_at_s=asked_at_s)
        if step.yields_because is not None:
            raise self._duplicate(step.yields_because)
        if step.rival is not None:
            self._log.warning("duplicate_owner_detected", incarnation=step.rival)
        if step.write is None:
            return True
        if asked_at_s < self._changed_at_s and not step.rival:
            return False
        was, self.own = self.own, self.own.changed_to(step.write.status)
        if self.own is not was:
            self._log.info("standby_ended", has_replaced=step.has_replaced)
        return (await self._write(step.write)).outcome is WriteOutcome.WON

    # Other changes.

    async def is_sole_holder(self) -> bool:
        """Whether, by the records, no other processor has written under this ``owner_id``.

        Raises:
            StoreUnavailableError: the member records could not be read.
        """
        is_recent = self.own.rivals.is_recent(self._clock(), self._expiration)
        return not is_recent and await self.is_recorded()

    async def is_recorded(self) -> bool:
        """Whether the member record names this processor's incarnation now.

        Raises:
            StoreUnavailableError: the member records could not be read.
        """
        mine = self._mine(await self._store.list_members(self._group))
        return mine is not None and not self.own.is_rival(mine)

    async def renew(self) -> None:
        """Write the record again, unchanged."""
        await self._write(self.own.member)

    async def change_to(self, status: MemberStatus) -> None:
        """Write another status: *leaving*, or *restarting*.

        If a write fails, this reads the record and writes over it, unless it is that of another
        incarnation.
        """
        self.own = self.own.changed_to(status)
        self._changed_at_s = self._clock()
        result = await self._write(self.own.member)
        for _ in range(ATTEMPTS_MAX - 1):
            if result.outcome is WriteOutcome.WON:
                return
            mine = self._mine(await self._store.list_members(self._group))
            if self._is_withdrawn or self.own.is_rival(mine):
                return
            result = await self._write_over(mine)

    async def withdraw(self) -> None:
        """Delete the record, after a write of it that is under way: that one changes the ETag.

        A write whose answer was lost has changed it, too. Then this reads the record first.
        """
        self._is_withdrawn = True
        async with self._writing:
            outcome = await self._store.withdraw_member(self._group, self.own.member)
            if outcome is WriteOutcome.LOST:
                mine = self._mine(await self._store.list_members(self._group))
                if mine is not None and not self.own.is_rival(mine):
                    await self._store.withdraw_member(self._group, mine)

    def _mine(self, present: MembershipSnapshot) -> Member | None:
        return find(present, self.own.member.owner_id)

    async def _write_over(self, mine: Member | None) -> MemberResult:
        return await self._write(replace(self.own.member, etag=mine.etag if mine else None))

    async def _write(self, member: Member) -> MemberResult:
        """Write the record, and remember its ETag if the write was confirmed."""
        async with self._writing:
            if self._is_withdrawn:
                return MemberResult(outcome=WriteOutcome.UNKNOWN)
            sent_at_s = self._clock()
            self._answers.note_sent()
            result = await self._store.announce_member(self._group, member)
            self._answers.note_outcomes([result.outcome])
            if result.outcome is WriteOutcome.WON and result.member is not None:
                self.own = replace(
                    self.own,
                    member=replace(self.own.member, etag=result.member.etag),
                    sent_at_s=sent_at_s,
                    answered_at_s=self._clock(),
                )
            return result

    def _duplicate(self, what: str) -> DuplicateOwnerError:
        return DuplicateOwnerError(
            f"it belongs to another live processor of the group: {what}. Give every processor one "
            "of its own, or none",
            setting="owner_id",
            value=repr(self.own.member.owner_id),
        )


def own_member(config: GroupConfig, owner_id: str, offset_format: OffsetFormat) -> Member:
    """Return the record of a processor that has not started, which has no incarnation.

    *owner_id* is the user's, or empty: the number at its end is the ordinal, unless the
    configuration has one: ``consumer-3``.

    Raises:
        ConfigurationError: the placement needs a setting that the configuration lacks.
    """
    member = Member(
        owner_id=owner_id,
        incarnation="",
        hands_over=config.load_balancing_strategy.lets_go,
        weight=config.weight,
        capacity=config.capacity,
        ordinal=ordinal_in(owner_id) if config.ordinal is None else config.ordinal,
        placement=config.placement.name,
        deployment_id=config.deployment_id,
        offset_format=offset_format,
        version=__version__,
    )
    config.placement.check(MemberFacts.of(member))
    return member

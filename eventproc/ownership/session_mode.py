"""Session leases: what a cycle does in addition, and what it may skip.

In addition, it fences silent members, and detects members that do not use session leases.
It may skip reading the ownership records while the member records are unchanged: a processor that
changes what others own first joins, leaves or becomes silent, and its member record shows that.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from eventproc.config import EventProcessorConfig
from eventproc.core.lease import is_alive
from eventproc.core.session_lease import (
    absent_since,
    live_session_owners,
    members_to_fence,
    of_another_mode,
)
from eventproc.errors import ConfigurationError
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
from eventproc.ports import CheckpointStore

FULL_POLL_EXPIRATION_FRACTION: Final = 0.5
"""The ownership records are read at least this often, even if membership is unchanged: to notice
an operator's changes, and partitions that were stolen from this processor."""

Signature = frozenset[tuple[str, str, str, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _FullPoll:
    """A poll of member and ownership records, after which there was nothing left to do."""

    partition_ids: tuple[str, ...]
    held: frozenset[str]
    signature: Signature
    at_s: float


class SessionLeases:
    """One processor's view of a group in session mode."""

    def __init__(
        self,
        store: CheckpointStore,
        group: ConsumerGroup,
        owner_id: str,
        *,
        config: EventProcessorConfig,
        log: Logger,
    ) -> None:
        self._store = store
        self._group = group
        self._owner_id = owner_id
        self._expiration = config.ownership_expiration
        self._full_poll_interval_s = (
            FULL_POLL_EXPIRATION_FRACTION * config.ownership_expiration
        ).total_seconds()
        self._log = log
        self._last_full_poll: _FullPoll | None = None
        self._absent_since_s: dict[str, float] = {}
        self._has_foreign_members = False

    async def fence_silent(
        self, present: MembershipSnapshot, owned: OwnershipSnapshot
    ) -> MembershipSnapshot:
        """Write the status *dead* into the records of silent owners that this processor must fence.

        Returns the listing with the records that were written.
        """
        silent = members_to_fence(
            present,
            self._owner_id,
            {o.owner_id for o in owned.ownerships if o.owner_id is not None},
            expiration=self._expiration,
        )
        dead = {}
        for member in silent:
            result = await self._store.announce_member(
                self._group, replace(member, status=MemberStatus.DEAD)
            )
            if result.outcome is WriteOutcome.WON and result.member is not None:
                self._log.warning("member_fenced", of_owner_id=member.owner_id)
                dead[member.owner_id] = result.member
        return replace(present, members=tuple(dead.get(m.owner_id, m) for m in present.members))

    def live_owners(
        self,
        present: MembershipSnapshot,
        owned: OwnershipSnapshot,
        now_s: float,
        *,
        is_after_outage: bool,
    ) -> dict[str, str]:
        """Return the owner of each partition that has a live one."""
        member_by_owner = {member.owner_id: member for member in present.members}
        self._absent_since_s = absent_since(
            self._absent_since_s,
            (o.owner_id for o in owned.ownerships if o.owner_id is not None),
            member_by_owner,
            now_s,
        )
        return live_session_owners(
            owned,
            member_by_owner,
            self._absent_since_s,
            expiration=self._expiration,
            now_s=now_s,
            is_after_outage=is_after_outage,
        )

    def has_foreign_members(self, present: MembershipSnapshot, owned: OwnershipSnapshot) -> bool:
        """Whether the group has live members that do not use session leases.

        They expect each ownership record to be renewed.
        """
        foreign = of_another_mode(
            LeaseMode.SESSION, owned, present, self._owner_id, expiration=self._expiration
        )
        if bool(foreign) is not self._has_foreign_members:
            self._has_foreign_members = bool(foreign)
            log = self._log.error if foreign else self._log.info
            log("foreign_members_detected", owner_ids=sorted(foreign))
        return self._has_foreign_members

    def note_poll(
        self,
        present: MembershipSnapshot,
        partition_ids: Collection[str],
        held: frozenset[str],
        now_s: float,
        *,
        is_stable: bool,
    ) -> None:
        """Remember a full poll, if nothing was left to do after it."""
        self._last_full_poll = None
        if is_stable:
            self._last_full_poll = _FullPoll(
                partition_ids=tuple(partition_ids),
                held=held,
                signature=_signature(present, self._expiration),
                at_s=now_s,
            )

    def is_unchanged(
        self,
        present: MembershipSnapshot,
        partition_ids: Collection[str],
        held: frozenset[str],
        now_s: float,
    ) -> bool:
        """Whether the last full poll is recent and nothing can have changed since."""
        last = self._last_full_poll
        return (
            last is not None
            and now_s - last.at_s <= self._full_poll_interval_s
            and last.partition_ids == tuple(partition_ids)
            and last.held == held
            and last.signature == _signature(present, self._expiration)
        )


def _signature(present: MembershipSnapshot, expiration: timedelta) -> Signature:
    """Of each member record: owner id, incarnation, status, and whether the record is fresh."""
    return frozenset(
        (
            member.owner_id,
            member.incarnation,
            member.status.value,
            is_alive(member, present, expiration),
        )
        for member in present.members
    )


def check_lease_mode(
    me: Member, owned: OwnershipSnapshot, present: MembershipSnapshot, *, expiration: timedelta
) -> None:
    """Refuse to join a group whose members have another lease mode.

    Raises:
        ConfigurationError: the group has such members, or the mode is ``SESSION`` and the store
            does not report its time.
    """
    mode = me.lease_mode
    others = of_another_mode(mode, owned, present, me.owner_id, expiration=expiration)
    if others:
        named = ", ".join(sorted(others)[:3])
        raise ConfigurationError(
            f"lease_mode is {mode.value!r}, but {len(others)} live processors of the group have "
            f"another one or belong to another SDK ({named}): use one lease_mode in all "
            "processors, and stop all of them before you change it"
        )
    if mode is LeaseMode.SESSION and present.as_of is None:
        raise ConfigurationError(
            "lease_mode is 'session', but the store does not report its own time, which decides "
            "whether a session has expired: use 'partition'"
        )

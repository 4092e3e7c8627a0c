"""What a look at the group has to do more, and less, where leases live by session.

More: somebody has to declare the dead, and to notice processors that know nothing of sessions.
Less: whoever changes what others own joins, leaves or falls silent before, and that is seen in the
presence records. While these are as they were, the ownership records need not be read.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from eventproc.config import EventProcessorConfig
from eventproc.core.lease import is_alive
from eventproc.core.session_lease import (
    live_session_owners,
    miss,
    of_another_mode,
    sessions_to_end,
)
from eventproc.errors import ConfigurationError
from eventproc.logs import Logger
from eventproc.membership import LeaseMode, Member, MembershipSnapshot, MemberStatus
from eventproc.models import ConsumerGroup, OwnershipSnapshot, WriteOutcome
from eventproc.ports import CheckpointStore

FULL_LOOK_EXPIRATION_FRACTION: Final = 0.5
"""The ownership records are read at least this often, though nobody came or went: for what an
operator touched, and for a partition that was stolen from a processor that did not notice."""

Signature = frozenset[tuple[str, str, str, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """A whole look, after which nothing was left to do."""

    partition_ids: tuple[str, ...]
    held: frozenset[str]
    signature: Signature
    at_s: float


class SessionGroup:
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
        self._full_look_every_s = (
            FULL_LOOK_EXPIRATION_FRACTION * config.ownership_expiration
        ).total_seconds()
        self._log = log
        self._look: _Look | None = None
        self._absent_since_s: dict[str, float] = {}
        self._has_strangers = False

    async def declare_dead(
        self, present: MembershipSnapshot, owned: OwnershipSnapshot
    ) -> MembershipSnapshot:
        """Declare those owners dead whose silence it is this processor's duty to notice.

        Returns the listing with what was declared.
        """
        silent = sessions_to_end(
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
                self._log.warning("session_ended", of_owner_id=member.owner_id)
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
        self._absent_since_s = miss(
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

    def has_strangers(self, present: MembershipSnapshot, owned: OwnershipSnapshot) -> bool:
        """Whether somebody is there who expects each record to be renewed."""
        strangers = of_another_mode(
            LeaseMode.SESSION, owned, present, self._owner_id, expiration=self._expiration
        )
        if bool(strangers) is not self._has_strangers:
            self._has_strangers = bool(strangers)
            log = self._log.error if strangers else self._log.info
            log("strangers_in_session_group", owner_ids=sorted(strangers))
        return self._has_strangers

    def note_look(
        self,
        present: MembershipSnapshot,
        partition_ids: Collection[str],
        held: frozenset[str],
        now_s: float,
        *,
        is_at_rest: bool,
    ) -> None:
        """Remember a whole look, if nothing was left to do after it."""
        self._look = None
        if is_at_rest:
            self._look = _Look(
                partition_ids=tuple(partition_ids),
                held=held,
                signature=_signature(present, self._expiration),
                at_s=now_s,
            )

    def is_as_before(
        self,
        present: MembershipSnapshot,
        partition_ids: Collection[str],
        held: frozenset[str],
        now_s: float,
    ) -> bool:
        """Whether nothing can have changed since the last whole look, and that is not too old."""
        look = self._look
        return (
            look is not None
            and now_s - look.at_s <= self._full_look_every_s
            and look.partition_ids == tuple(partition_ids)
            and look.held == held
            and look.signature == _signature(present, self._expiration)
        )


def _signature(present: MembershipSnapshot, expiration: timedelta) -> Signature:
    """What matters of the presence records: who is there, with what status, and is it alive?"""
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
    """Refuse to enter a group whose processors keep their leases in another way.

    Raises:
        ConfigurationError: there are such.
    """
    mode = me.lease_mode
    others = of_another_mode(mode, owned, present, me.owner_id, expiration=expiration)
    if others:
        named = ", ".join(sorted(others)[:3])
        raise ConfigurationError(
            f"lease_mode is {mode.value!r}, but {len(others)} live processors of the group have "
            f"another one or belong to another SDK ({named}): give all processors the same, and "
            "stop the others before you change it"
        )
    if mode is LeaseMode.SESSION and present.as_of is None:
        raise ConfigurationError(
            "lease_mode is 'session', but the store does not tell its time, by which sessions "
            "are judged: use 'partition'"
        )

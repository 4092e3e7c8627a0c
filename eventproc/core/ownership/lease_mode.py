"""Which record keeps an ownership alive: each ownership record, or the owner's member record.

A session lease needs one write for each processor instead of one for each partition. But then
claiming a partition does not make its former owner's next renewal fail, so the former owner must be
fenced first.

Rule 1: a member is not dead because its record is old. Another member must write the status *dead*
over exactly the record that is old; so of this write and a renewal only one can succeed.
Rule 2: a member that was fenced loses all that it owned, and must claim each partition again. An
ownership record that it wrote after that is valid: the member listing may be older than the
ownership listing.
Rule 3: an owner without a member record is an Azure SDK processor, or its record was deleted. Its
ownership records show whether it is alive; but another processor takes it for dead only after
it has found no member record of it for a whole expiration.
Rule 4: ownership moves only after a processor has joined, left or become silent, and the member
records show that. So the ownership records need not be read while the member records are unchanged.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Final

from eventproc.core.ownership.liveness import (
    foreign_owners,
    fresh_owners,
    is_fresh,
    live_members,
    recorded_owners,
)
from eventproc.core.ownership.members.status import FENCED_FROM
from eventproc.core.ownership.rules import Rules
from eventproc.core.placement.rank import rank
from eventproc.models import (
    LeaseMode,
    Member,
    MembershipSnapshot,
    MemberStatus,
    OwnershipSnapshot,
    PartitionOwnership,
)

DUTY_FRACTION: Final = 0.25
"""The part of the expiration for which one processor alone has the duty to fence a silent member;
after that every processor has it."""


def silent_members(
    present: MembershipSnapshot, owned: OwnershipSnapshot, me: str, expiration: timedelta
) -> tuple[Member, ...]:
    """Return the silent owners that this processor has to fence before their partitions are free.

    The live member with the lowest rank has this duty; if it does not act in time, every live
    member has it. Only with session leases.
    """
    owning = frozenset(recorded_owners(owned).values())
    sessions = _sessions(present)
    fresh = {m.owner_id for m in sessions if is_fresh(m, present, expiration)}
    fence_after = expiration
    if me != min(fresh, key=rank, default=me):
        fence_after += expiration * DUTY_FRACTION
    return tuple(
        member
        for member in sessions
        if member.owner_id in owning - {me}
        and member.status in FENCED_FROM
        and not is_fresh(member, present, fence_after)
    )


def as_fenced(present: MembershipSnapshot, silent: Collection[Member]) -> MembershipSnapshot:
    """Return the listing as it will be when the silent members are fenced."""
    names = {member.owner_id for member in silent}
    return replace(
        present,
        members=tuple(
            replace(m, status=MemberStatus.DEAD, last_modified=present.as_of)
            if m.owner_id in names
            else m
            for m in present.members
        ),
    )


def live_owners(
    rules: Rules,
    present: MembershipSnapshot,
    owned: OwnershipSnapshot,
    absent: frozenset[str],
    *,
    is_grace: bool,
) -> dict[str, str]:
    """Return the owner of each partition that has a live one.

    Without session leases, an owner is alive if its ownership record is fresh. With them, it is
    alive until it is fenced; rule 3 is for owners without a session. *absent* are the owners that
    have had no member record for a whole expiration. During a *grace*, after an outage of the
    store, an expired record proves nothing.
    """
    expiration = rules.expiration
    if rules.lease_mode is LeaseMode.PARTITION:
        return recorded_owners(owned) if is_grace else fresh_owners(owned, expiration)
    session_by_owner = {m.owner_id: m for m in _sessions(present)}
    others = {m.owner_id for m in present.members} - session_by_owner.keys()
    suspects = frozenset[str]() if is_grace else absent | others

    def is_live(ownership: PartitionOwnership) -> bool:
        session = session_by_owner.get(ownership.owner_id or "")
        if session is not None:
            return session.status is not MemberStatus.DEAD or (
                _may_be_newer(ownership, session, owned.resolution)
                and is_fresh(ownership, owned, expiration)
            )
        return ownership.owner_id not in suspects or is_fresh(ownership, owned, expiration)

    return {
        o.partition_id: o.owner_id
        for o in owned.ownerships
        if o.owner_id is not None and is_live(o)
    }


def _sessions(present: MembershipSnapshot) -> list[Member]:
    return [m for m in present.members if m.lease_mode is LeaseMode.SESSION]


def _may_be_newer(ownership: PartitionOwnership, dead: Member, resolution: timedelta) -> bool:
    """Whether the ownership record may be newer than the status *dead*.

    A store may truncate times to its resolution, so a record with the same time may be newer.
    """
    assert dead.last_modified is not None, "a record of a listing has its time"
    return ownership.last_modified + resolution >= dead.last_modified


def of_another_mode(
    mode: LeaseMode,
    owned: OwnershipSnapshot,
    present: MembershipSnapshot,
    me: str,
    *,
    expiration: timedelta,
) -> frozenset[str]:
    """Return the live processors that cannot share a group with one of this lease mode.

    Azure SDK processors write no member record, and renew each ownership record; so they can share
    a group with the mode ``PARTITION`` only.
    """
    others = {
        member.owner_id
        for member in live_members(present, (), expiration)
        if member.lease_mode is not mode
    }
    if mode is LeaseMode.SESSION:
        others |= foreign_owners(owned, present, me, expiration)
    return frozenset(others - {me})

"""Session leases: a processor's ownerships live as long as its member record is renewed.

That is one write for each processor instead of one for each partition. But claiming a partition
does not make its former owner's next renewal fail, so the former owner must be fenced first.

Rule 1: a member is not dead because its record is old. Another member must write the status *dead*
over exactly the record that is old; so of this write and a renewal only one can succeed.
Rule 2: a member that was fenced loses all that it owned, and must claim each partition again. An
ownership record that it wrote after that is valid: the member listing may be older than the
ownership listing.
Rule 3: an owner without a member record is an Azure SDK processor, or its record was deleted. Its
ownership records decide whether it is alive; but it is dead only for a processor that has seen no
member record for a whole expiration.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from eventproc.core.lease import is_alive
from eventproc.core.plan import rank
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


def live_session_owners(
    snapshot: OwnershipSnapshot,
    member_by_owner: Mapping[str, Member],
    absent_since_s: Mapping[str, float],
    *,
    expiration: timedelta,
    now_s: float,
    is_after_outage: bool,
) -> dict[str, str]:
    """Return the owner of each partition that has a live one.

    *absent_since_s* has, for each owner without a member record, since when that is so on this
    processor's clock.
    """
    live = {}
    for ownership in snapshot.ownerships:
        if ownership.owner_id is None:
            continue
        member = member_by_owner.get(ownership.owner_id)
        if member is not None and member.lease_mode is LeaseMode.SESSION:
            is_live = member.status is not MemberStatus.DEAD or _is_written_since(
                member, ownership, snapshot, expiration
            )
        else:
            absent_s = now_s - absent_since_s.get(ownership.owner_id, now_s)
            is_live = (
                is_after_outage
                or absent_s <= expiration.total_seconds()
                or is_alive(ownership, snapshot, expiration)
            )
        if is_live:
            live[ownership.partition_id] = ownership.owner_id
    return live


def absent_since(
    known: Mapping[str, float], owners: Iterable[str], present: Iterable[str], now_s: float
) -> dict[str, float]:
    """Return since when each owner has had no member record."""
    return {owner: known.get(owner, now_s) for owner in set(owners) - set(present)}


def _is_written_since(
    dead: Member, ownership: PartitionOwnership, snapshot: OwnershipSnapshot, expiration: timedelta
) -> bool:
    """Whether the ownership record may be newer than the status *dead*, and has not expired.

    Times may be cut to the store's resolution, so a record with the same time may be newer.
    """
    if dead.last_modified is None or snapshot.as_of is None:
        return False
    if ownership.last_modified + snapshot.resolution < dead.last_modified:
        return False
    return is_alive(ownership, snapshot, expiration)


def members_to_fence(
    present: MembershipSnapshot, me: str, owners: Iterable[str], *, expiration: timedelta
) -> list[Member]:
    """Return the silent owners that this processor has to fence.

    The live member with the lowest rank has this duty; if it does not act in time, every live
    member has it.
    """
    if present.as_of is None:
        return []
    owning = frozenset(owners)
    fresh, silent = [], []
    for member in present.members:
        if member.lease_mode is not LeaseMode.SESSION or member.last_modified is None:
            continue
        if is_alive(member, present, expiration):
            fresh.append(member.owner_id)
        elif member.owner_id in owning and member.status is not MemberStatus.DEAD:
            silent.append(member)
    is_first = me == min(fresh, key=rank, default=me)
    return [
        member
        for member in silent
        if member.owner_id != me and (is_first or _is_overdue(member, present.as_of, expiration))
    ]


def _is_overdue(member: Member, as_of: datetime, expiration: timedelta) -> bool:
    assert member.last_modified is not None, "only a record with a time can be too old"
    return as_of - member.last_modified > expiration * (1 + DUTY_FRACTION)


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
        for member in present.members
        if member.lease_mode is not mode
        and member.status is not MemberStatus.DEAD
        and is_alive(member, present, expiration)
    }
    if mode is LeaseMode.SESSION:
        known = {member.owner_id for member in present.members}
        others |= {
            ownership.owner_id
            for ownership in owned.ownerships
            if ownership.owner_id is not None
            and ownership.owner_id not in known
            and is_alive(ownership, owned, expiration)
        }
    return frozenset(others - {me})

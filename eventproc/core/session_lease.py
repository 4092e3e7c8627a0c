"""Leases by session: an ownership lives as long as its owner's presence record is renewed.

One write for each processor, in place of one for each partition. What a renewal of the ownership
record did by the way has to be done on purpose: who takes a partition must shut its owner out.

Rule 1: nobody is dead because its presence is old. Somebody must declare it, by a conditional
write over exactly the record that is old; so a renewal and a declaration cannot both succeed.
Rule 2: who is declared dead owns nothing of what it had, until it has claimed each again. What it
wrote since then it owns: a listing of the members may be older than one of the ownerships.
Rule 3: an owner without a presence record is none of ours, or somebody deleted the record. It is
judged by its ownership record, and only by who missed its presence for a whole expiration.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from eventproc.core.lease import is_alive
from eventproc.core.plan import rank
from eventproc.membership import LeaseMode, Member, MembershipSnapshot, MemberStatus
from eventproc.models import OwnershipSnapshot, PartitionOwnership

DUTY_FRACTION: Final = 0.25
"""Of the expiration: how long one processor alone has the duty to declare another dead; then
everybody has it."""


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

    *absent_since_s* tells for each owner without presence since when, on my own clock, it is
    missed.
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
            missed_s = now_s - absent_since_s.get(ownership.owner_id, now_s)
            is_live = (
                is_after_outage
                or missed_s <= expiration.total_seconds()
                or is_alive(ownership, snapshot, expiration)
            )
        if is_live:
            live[ownership.partition_id] = ownership.owner_id
    return live


def miss(
    known: Mapping[str, float], owners: Iterable[str], present: Iterable[str], now_s: float
) -> dict[str, float]:
    """Note since when each owner is without a presence record."""
    return {owner: known.get(owner, now_s) for owner in set(owners) - set(present)}


def _is_written_since(
    dead: Member, ownership: PartitionOwnership, snapshot: OwnershipSnapshot, expiration: timedelta
) -> bool:
    """Whether the record may be newer than the declaration, and has not expired by itself.

    Times may be cut to the store's resolution, so one of the same moment may be newer.
    """
    if dead.last_modified is None or snapshot.as_of is None:
        return False
    if ownership.last_modified + snapshot.resolution < dead.last_modified:
        return False
    return is_alive(ownership, snapshot, expiration)


def sessions_to_end(
    present: MembershipSnapshot, me: str, owners: Iterable[str], *, expiration: timedelta
) -> list[Member]:
    """Return the owners whose silence this processor has to declare.

    The first of the living, by rank, has the duty; if it does not do it, everybody has.
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
    assert member.last_modified is not None, "it was found to be old"
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

    Processors of other SDKs write no presence, and renew each record; so they can share a group
    with the mode ``PARTITION`` only.
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

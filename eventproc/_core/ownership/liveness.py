"""Which records are fresh, and which members and owners are alive?

Rule 1: whether a record has expired is decided by the store's clock alone: the time of the answer
that carried it, against the time at which the same store last wrote it.
Rule 2: the ownership records of a processor show that it is alive. So it does not renew its member
record as well.
Rule 3: an ownership record shows for a whole expiration that its owner is alive, even if another
owner has replaced it. A member whose last partition another one took has no fresh record until it
has read that, and has written its member record.
Rule 4: after an outage of the store a member may have had no time to renew. During the *grace*
that follows, those that were alive before it are alive (``living.py``).
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from eventproc.models import Member, MembershipSnapshot, OwnershipSnapshot, PartitionOwnership


def is_fresh(
    record: PartitionOwnership | Member,
    listing: OwnershipSnapshot | MembershipSnapshot,
    expiration: timedelta,
) -> bool:
    """Whether a record of a listing is not expired.

    A store may truncate both times to its resolution, which is therefore added to the expiration.
    """
    written_at = record.last_modified
    return written_at is not None and listing.as_of - written_at <= expiration + listing.resolution


def fresh_owners(owned: OwnershipSnapshot, expiration: timedelta) -> dict[str, str]:
    """Return the owner of each partition whose record is not expired."""
    # The rule of is_fresh, computed once: a hub may have thousands of partitions.
    oldest = owned.as_of - expiration - owned.resolution
    return {
        o.partition_id: o.owner_id
        for o in owned.ownerships
        if o.owner_id is not None and o.last_modified >= oldest
    }


def last_writes(
    known: Mapping[str, datetime], owned: OwnershipSnapshot, expiration: timedelta
) -> dict[str, datetime]:
    """Return when an ownership record of each owner was last written, if it is not too long ago.

    *known* is what an earlier listing showed: another owner may have replaced these records.
    """
    oldest = owned.as_of - (expiration + owned.resolution)
    newest = {owner_id: at for owner_id, at in known.items() if at >= oldest}
    for o in owned.ownerships:
        if o.owner_id is not None and o.last_modified >= newest.get(o.owner_id, oldest):
            newest[o.owner_id] = o.last_modified
    return newest


def recorded_owners(owned: OwnershipSnapshot) -> dict[str, str]:
    """Return the owner of each partition that is not released, whatever the record's age."""
    return {o.partition_id: o.owner_id for o in owned.ownerships if o.owner_id is not None}


def live_members(
    present: MembershipSnapshot, owners: Iterable[str], expiration: timedelta
) -> tuple[Member, ...]:
    """Return the members that have a fresh record, or are among the live *owners*."""
    owning = frozenset(owners)
    return tuple(
        member
        for member in present.members
        if member.owner_id in owning or is_fresh(member, present, expiration)
    )


def presumed_live(
    members: Iterable[Member],
    present: MembershipSnapshot,
    owners: Iterable[str],
    expiration: timedelta,
) -> frozenset[str]:
    """Return those of the *members* that neither have a fresh record nor are among the *owners*."""
    shown = live_members(present, owners, expiration)
    return frozenset(m.owner_id for m in members) - {m.owner_id for m in shown}


def foreign_owners(
    owned: OwnershipSnapshot, present: MembershipSnapshot, me: str, expiration: timedelta
) -> frozenset[str]:
    """Return the live owners without a member record: processors of Azure's SDKs."""
    known = {member.owner_id for member in present.members}
    return frozenset(fresh_owners(owned, expiration).values()) - known - {me}


def renewal_interval(
    before: OwnershipSnapshot, after: OwnershipSnapshot, owners: Collection[str]
) -> timedelta:
    """Return the longest time after which one of *owners* renewed a record, as two listings show.

    Zero if they show no renewal. Of several renewals between the listings only the first is sure,
    and it came after *before*.
    """
    former, gap, longest = before.by_partition, after.as_of - before.as_of, timedelta(0)
    for o in after.ownerships:
        was = former.get(o.partition_id)
        if o.owner_id not in owners or was is None or was.owner_id != o.owner_id:
            continue
        if was.etag != o.etag:
            apart = o.last_modified - was.last_modified
            is_one = apart > 2 * gap
            longest = max(longest, apart if is_one else before.as_of - was.last_modified)
    return longest

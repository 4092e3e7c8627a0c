"""How long may a claim be trusted, by its owner and by everybody else?

Rule 1: whether a record is expired is judged on the store's clock alone: the time of the answer
that carried it, against the time at which the same store last wrote it.
Rule 2: an owner counts its own lease from *before it sent* the write that was confirmed, and stops
a margin before the expiration. A taker counts from after the write was made. So the clocks' offset
never matters, only how fast they run.
Rule 3: after a time without answers from the store nobody is pronounced dead at once. The others
could not write either.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from eventproc.membership import Member, MembershipSnapshot, MemberStatus
from eventproc.models import OwnershipSnapshot, PartitionOwnership

TRUST_FRACTION: Final = 0.9
"""Of the expiration: an owner's clock may run 5 % slow and the store's 5 % fast."""

RENEWALS_PER_EXPIRATION: Final = 3
"""A record is renewed at a third of its life, so that two renewals in a row may fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Since when, on my own clock, a record has not changed."""

    etag: str
    first_seen_s: float


def trusted_until_s(sent_at_s: float, expiration: timedelta) -> float:
    """Until when a lease may be trusted whose last confirmed write was sent at ``sent_at_s``."""
    return sent_at_s + expiration.total_seconds() * TRUST_FRACTION


def renewal_due_at_s(sent_at_s: float, expiration: timedelta) -> float:
    """When to renew a lease whose last confirmed write was sent at ``sent_at_s``."""
    return sent_at_s + expiration.total_seconds() / RENEWALS_PER_EXPIRATION


def is_fresh(
    last_modified: datetime, as_of: datetime, resolution: timedelta, expiration: timedelta
) -> bool:
    """Whether a record written then is still alive at the time of the answer.

    Both times may be cut to the store's resolution, so a record gets that much longer.
    """
    return as_of - last_modified <= expiration + resolution


def is_alive(
    record: PartitionOwnership | Member,
    listing: OwnershipSnapshot | MembershipSnapshot,
    expiration: timedelta,
) -> bool:
    """Whether a record of a listing is alive; where nobody can tell the time it is taken to be."""
    return (
        listing.as_of is None
        or record.last_modified is None
        or is_fresh(record.last_modified, listing.as_of, listing.resolution, expiration)
    )


def sight(
    sightings: Mapping[str, Sighting], ownerships: Iterable[PartitionOwnership], now_s: float
) -> dict[str, Sighting]:
    """Note for each record since when it has not changed; what is gone is forgotten."""
    seen = {}
    for ownership in ownerships:
        known = sightings.get(ownership.partition_id)
        seen[ownership.partition_id] = (
            known
            if known is not None and known.etag == ownership.etag
            else Sighting(etag=ownership.etag, first_seen_s=now_s)
        )
    return seen


def live_owners(
    snapshot: OwnershipSnapshot,
    sightings: Mapping[str, Sighting],
    *,
    expiration: timedelta,
    now_s: float,
    is_after_outage: bool,
) -> dict[str, str]:
    """Return the owner of each partition that has a live one.

    A store that cannot tell its time falls back to observation: a record is dead that did not
    change for an expiration of my own clock (as the Kinesis client library judges its leases).
    """
    owned = [o for o in snapshot.ownerships if o.owner_id is not None]
    if is_after_outage:
        live = owned
    elif snapshot.as_of is not None:
        # As is_fresh has it; a hub may have thousands of partitions.
        oldest = snapshot.as_of - expiration - snapshot.resolution
        live = [o for o in owned if o.last_modified >= oldest]
    else:
        oldest_s = now_s - expiration.total_seconds()
        live = [o for o in owned if sightings[o.partition_id].first_seen_s >= oldest_s]
    return {o.partition_id: o.owner_id for o in live if o.owner_id is not None}


def present_members(
    members: Iterable[Member],
    *,
    as_of: datetime | None,
    resolution: timedelta,
    expiration: timedelta,
    owners: Iterable[str],
) -> list[Member]:
    """Return the members that are there: whose record is fresh, or who own something.

    A processor that owns partitions proves with their records that it lives, and need not renew
    its presence as well. One that was declared dead is not there.
    """
    owning = frozenset(owners)
    return [
        member
        for member in members
        if member.status is not MemberStatus.DEAD
        and (
            member.owner_id in owning
            or as_of is None
            or (
                member.last_modified is not None
                and is_fresh(member.last_modified, as_of, resolution, expiration)
            )
        )
    ]

"""How long does a lease last, for its owner and for the other members?

Rule 1: whether a record has expired is decided by the store's clock alone: the time of the answer
that carried it, against the time at which the same store last wrote it.
Rule 2: an owner counts its own lease from *before it sent* the write that was confirmed, and stops
a margin before the expiration. A processor that takes over counts from after the write was made.
So the clocks' offset never matters, only how fast they run.
Rule 3: after an outage of the store no member is considered dead for a while, because live members
could not renew either.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from eventproc.models import (
    Member,
    MembershipSnapshot,
    MemberStatus,
    OwnershipSnapshot,
    PartitionOwnership,
)

TRUST_FRACTION: Final = 0.9
"""The part of the expiration for which an owner trusts its lease: so its own clock may run 5 % slow
and the store's 5 % fast."""

RENEWALS_PER_EXPIRATION: Final = 3
"""A record is renewed at a third of its epoch, so that two renewals in a row may fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Since when, on this processor's clock, a record has not changed."""

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
    """Whether a record last written at *last_modified* is not expired at *as_of*.

    Both times may be cut to the store's resolution, so the record gets that much longer.
    """
    return as_of - last_modified <= expiration + resolution


def is_alive(
    record: PartitionOwnership | Member,
    listing: OwnershipSnapshot | MembershipSnapshot,
    expiration: timedelta,
) -> bool:
    """Whether a record of a listing is not expired; without a time, assume that it is not."""
    return (
        listing.as_of is None
        or record.last_modified is None
        or is_fresh(record.last_modified, listing.as_of, listing.resolution, expiration)
    )


def observe(
    observations: Mapping[str, Observation], ownerships: Iterable[PartitionOwnership], now_s: float
) -> dict[str, Observation]:
    """Return since when each record has not changed; deleted records are dropped."""
    seen = {}
    for ownership in ownerships:
        known = observations.get(ownership.partition_id)
        seen[ownership.partition_id] = (
            known
            if known is not None and known.etag == ownership.etag
            else Observation(etag=ownership.etag, first_seen_s=now_s)
        )
    return seen


def live_owners(
    snapshot: OwnershipSnapshot,
    observations: Mapping[str, Observation],
    *,
    expiration: timedelta,
    now_s: float,
    is_after_outage: bool,
) -> dict[str, str]:
    """Return the owner of each partition that has a live one.

    For a store that does not report its time, a record is expired if it did not change for
    *expiration* on this processor's clock (as in the Kinesis Client Library).
    """
    owned = [o for o in snapshot.ownerships if o.owner_id is not None]
    if is_after_outage:
        live = owned
    elif snapshot.as_of is not None:
        # The rule of is_fresh, computed once: a hub may have thousands of partitions.
        oldest = snapshot.as_of - expiration - snapshot.resolution
        live = [o for o in owned if o.last_modified >= oldest]
    else:
        oldest_s = now_s - expiration.total_seconds()
        live = [o for o in owned if observations[o.partition_id].first_seen_s >= oldest_s]
    return {o.partition_id: o.owner_id for o in live if o.owner_id is not None}


def present_members(
    members: Iterable[Member],
    *,
    as_of: datetime | None,
    resolution: timedelta,
    expiration: timedelta,
    owners: Iterable[str],
) -> list[Member]:
    """Return the live members: those that have a fresh record, or own partitions.

    The ownership records of a processor show that it is alive, so it does not renew its member
    record as well. A member with the status *dead* is not live.
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

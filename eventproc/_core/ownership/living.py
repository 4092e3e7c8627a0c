"""What a cycle read of its group, and who is alive by that and by what earlier listings showed.

What a single listing shows is in ``liveness.py``. It may show too little of a live member, so this
remembers for a while:

- when the store last wrote an ownership record of each owner: a member that has just lost its last
  partition may have an old member record;
- the members before an outage of the store, which may have had no time to renew (*spared*);
- since when an owner has had no member record: an operator may have deleted it, and its member
  writes it again at its next poll.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from eventproc._core.ownership.lease import Lease, contradicted
from eventproc._core.ownership.liveness import (
    fresh_owners,
    last_writes,
    live_members,
    presumed_live,
    recorded_owners,
)
from eventproc._core.ownership.members import OwnRecord
from eventproc._core.ownership.rules import Rules
from eventproc._core.ownership.stability import longer_than, since
from eventproc._core.placement.published_plan import StoredPlan
from eventproc.models import Member, MembershipSnapshot, OwnershipSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one cycle read, and what this processor had at that moment."""

    partition_ids: tuple[str, ...]
    present: MembershipSnapshot
    owned: OwnershipSnapshot
    published: StoredPlan | None = None
    """``None``: not read, because the group publishes no plan, or it could not be read."""

    expected: frozenset[str] | None = None
    """The members that the roster names; ``None`` if this processor has not read it."""

    asked_at_s: float
    """When the first of these was requested."""

    silence_s: float = 0.0
    """The longest time without any answer of the store since the last poll."""

    unanswered_s: float = 0.0
    """The longest time since the last poll in which it answered no write of this processor."""

    own: OwnRecord
    leases: Mapping[str, Lease]
    is_trusted: bool
    """Whether any lease may be trusted now."""

    handing_over: frozenset[str] = frozenset()
    """Partitions that are being handed over; they count as held until that is done."""

    running: frozenset[str] = frozenset()
    """Partitions whose handler may still run, even if the lease is lost."""

    @property
    def held(self) -> frozenset[str]:
        """The partitions that count as this processor's own, whatever the listing says."""
        return self.handing_over.union(self.leases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Living:
    """The live members and owners, as the newest listing shows them."""

    owner_by_partition: Mapping[str, str] = field(default_factory=dict)
    """The live owner of each partition that has one."""

    members: tuple[Member, ...] = ()
    """The live members, also those whose record is missing for a moment (``_unrecorded``)."""

    presumed: frozenset[str] = frozenset()
    """Those of them that may be dead: no record of theirs is fresh."""

    contradicted: tuple[Lease, ...] = ()
    """The leases that the listing contradicts."""

    absent_since_s: Mapping[str, float] = field(default_factory=dict)
    """Since when each recorded owner has had no member record."""

    written_at: Mapping[str, datetime] = field(default_factory=dict)
    """When the store last wrote an ownership record of each owner, by its clock."""


def observe_living(
    known: Living, listing: Listing, rules: Rules, now_s: float, *, is_grace: bool
) -> Living:
    """Return who is alive after a poll.

    In a *grace*, after an outage of the store, an expired record proves nothing.
    """
    present, owned = listing.present, listing.owned
    me, expiration = rules.owner_id, rules.expiration
    recorded = {m.owner_id for m in present.members}
    unrecorded = set(recorded_owners(owned).values()) - recorded
    absent_since_s = since(known.absent_since_s, unrecorded, now_s)
    absent = longer_than(expiration, absent_since_s, now_s)
    live = recorded_owners(owned) if is_grace else fresh_owners(owned, expiration)
    suspects = contradicted(listing.leases.values(), me, owned, listing.asked_at_s)
    not_mine = _taken_from_me(suspects, live, me) | _expired(listing, live, me)
    live.update(dict.fromkeys(listing.held - not_mine, me))
    written_at = last_writes(known.written_at, owned, expiration)
    spared = {member.owner_id for member in known.members} if is_grace else set[str]()
    members = live_members(present, {*live.values(), *written_at} | spared, expiration)
    members += _unrecorded(known, unrecorded - absent, live)
    return Living(
        owner_by_partition=live,
        members=members,
        presumed=presumed_live(members, present, written_at, expiration),
        contradicted=suspects,
        absent_since_s=absent_since_s,
        written_at=written_at,
    )


def _taken_from_me(suspects: Collection[Lease], live: Mapping[str, str], me: str) -> frozenset[str]:
    """Return the partitions that are recorded for other owners, while my renewals get no answer.

    Their leases are not lost yet, but the plan must not count them as mine: it would take other
    partitions from me, and give them back as soon as the leases are lost.
    """
    return frozenset(
        lease.partition_id
        for lease in suspects
        if lease.is_doubtful and live.get(lease.partition_id, me) != me
    )


def _expired(listing: Listing, live: Mapping[str, str], me: str) -> frozenset[str]:
    """Return the partitions that are recorded as mine, and that I could not renew in time.

    For the others they have no owner. If they were mine in my plan, I would expect the others to
    take partitions that by their plans I take.
    """
    doubtful = {p for p, lease in listing.leases.items() if lease.is_doubtful and p not in live}
    stored = listing.owned.by_partition
    recorded = {p for p in doubtful & stored.keys() if stored[p].owner_id == me}
    return frozenset(recorded - listing.handing_over)


def _unrecorded(
    known: Living, absent: Collection[str], live: Mapping[str, str]
) -> tuple[Member, ...]:
    """Return the live owners among the *absent*, with the records that they had before.

    If such a member counted as foreign until it writes its record again, the others would follow
    another plan.
    """
    owning = set(live.values()).intersection(absent)
    return tuple(m for m in known.members if m.owner_id in owning)

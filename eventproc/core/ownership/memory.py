"""What a processor remembers of its group from one poll to the next: everything "since when".

A cycle reads the records, lets ``observe`` advance this memory, and gives it to
``cycle.decide``. Both are pure. All instants are seconds on this processor's monotonic clock; what
has expired is decided by the store's clock (``liveness.py``).

==================  ===================================================  ==========================
since when          question                                             forgotten
==================  ===================================================  ==========================
``read_at_s``       did the store have an outage?                        never
``grace_until_s``   could live members not renew yet?                    when it is over
``absent_since_s``  has an owner lost its member record for good?        when it has one again
``written_at``      is an owner alive that has just lost everything?     after an expiration
``membership``      have other members read the same membership?         when the members change
``waiting_since_s`` has a member had its time to let go, or to claim?    when nothing waits for it,
                                                                         and after an outage
``schema_age``      have other members read the same schema?             when its number changes
``expected``        has a member had its time to join?                   when the roster does not
                                                                         name it any more
``observed``        can the records have changed since the last poll?    at each full poll
==================  ===================================================  ==========================
"""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

from eventproc.core.ownership.balance import Moves, Shares, moves, shares
from eventproc.core.ownership.expected import ExpectedMembers, observe_expected
from eventproc.core.ownership.group import Group, Wait, plan_input, standings, with_placement
from eventproc.core.ownership.lease import Lease, contradicted
from eventproc.core.ownership.lease_mode import live_owners, of_another_mode, silent_members
from eventproc.core.ownership.liveness import is_fresh, last_writes, live_members, presumed_live
from eventproc.core.ownership.member_status import DEAD, OwnRecord
from eventproc.core.ownership.rules import Rules
from eventproc.core.ownership.schemas import Publication, followed, highest, leads, publication
from eventproc.core.ownership.stability import PlanInputObservation, observe_plan_input
from eventproc.core.placement.schema import Schema, StoredSchema
from eventproc.models import LeaseMode, Member, MembershipSnapshot, OwnershipSnapshot

K = TypeVar("K", bound=Hashable)

OUTAGE_EXPIRATION_FRACTION: Final = 0.5
"""A store that did not answer for this part of the expiration had an outage."""

GRACE_INTERVALS: Final = 2
"""After an outage, for how many load-balancing intervals no member is considered dead, so that
each has time to renew."""

FULL_POLL_EXPIRATION_FRACTION: Final = 0.5
"""The ownership records are read at least this often, even if membership is unchanged: to notice
an operator's changes, and partitions that were stolen from this processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one cycle read, and what this processor had at that moment."""

    partition_ids: tuple[str, ...]
    present: MembershipSnapshot
    owned: OwnershipSnapshot | None
    """``None``: not read, because nothing can have changed (``needs_ownership``)."""

    schema: StoredSchema | None = None
    """``None``: not read, because the group publishes no plan, or it could not be read."""

    expected: frozenset[str] | None = None
    """The members that the roster names; ``None`` if this processor has not read it."""

    asked_at_s: float
    """When the first of these was requested."""

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
class Observed:
    """What the newest listing with ownership records shows."""

    listing: Listing
    at_s: float
    group: Group
    shares: Shares
    moves: Moves
    members: tuple[Member, ...]
    """The live members, also those whose record is missing for a moment (``_unrecorded``)."""

    silent: tuple[Member, ...]
    """The members that this processor has to fence. Their partitions already count as free."""

    contradicted: tuple[Lease, ...]
    """The leases that the listing contradicts."""

    outsiders: frozenset[str]
    """Live owners that this processor's lease mode or placement does not admit."""

    is_leader: bool
    """Whether this processor leads a group that follows a published plan."""

    publication: Publication | None
    """What this processor publishes, if it leads a group that follows a published plan."""

    is_at_rest: bool
    """Whether nothing is left to do, and nothing can change unless a member record does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMemory:
    """What one processor remembers of its group."""

    now_s: float = float("-inf")
    listing: Listing | None = None
    """The newest one."""

    observed: Observed | None = None
    read_at_s: float | None = None
    grace_until_s: float = float("-inf")
    absent_since_s: Mapping[str, float] = field(default_factory=dict)
    written_at: Mapping[str, datetime] = field(default_factory=dict)
    """When the store last wrote an ownership record of each owner, by its clock; only with
    partition leases."""

    replaced_at_s: float = float("-inf")
    """When a listing last showed another process under an owner id than the one before. The former
    process may still leave, and hand over; it has no member record that would show that."""

    membership: PlanInputObservation | None = None
    expected: ExpectedMembers = field(default_factory=ExpectedMembers)
    waiting_since_s: Mapping[Wait, float] = field(default_factory=dict)
    schema: Schema | None = None
    """The published plan with the highest number that was seen."""

    schema_age: PlanInputObservation | None = None
    """Since when the group has followed this schema."""

    @property
    def is_grace(self) -> bool:
        """Whether the store had an outage so recently that live members may look dead."""
        return self.now_s < self.grace_until_s

    @property
    def spared(self) -> set[str]:
        """During the grace: the members before the outage, which may have had no time to renew."""
        known = self.observed.members if self.is_grace and self.observed else ()
        return {member.owner_id for member in known}

    @property
    def outsiders(self) -> frozenset[str]:
        """Live owners that this processor's lease mode or placement does not admit."""
        return frozenset() if self.observed is None else self.observed.outsiders


def needs_ownership(memory: GroupMemory, listing: Listing, rules: Rules, now_s: float) -> bool:
    """Whether the ownership records have to be read, or the member records show enough."""
    known = memory.observed
    full_poll_interval = FULL_POLL_EXPIRATION_FRACTION * rules.expiration
    return (
        known is None
        or not known.is_at_rest
        or bool(listing.handing_over)
        # A member that has not seen yet that this one leaves may still hand over to it.
        or listing.own.member.is_leaving
        or now_s - known.at_s > full_poll_interval.total_seconds()
        or _signature(known.listing, rules) != _signature(listing, rules)
        # It was silent before, but another member had the duty to fence it.
        or _has_to_fence(known.listing, listing, rules)
    )


def _has_to_fence(known: Listing, listing: Listing, rules: Rules) -> bool:
    """Whether this processor now has to fence a member that owned something in *known*."""
    assert known.owned is not None, "what was observed has ownership records"
    return bool(silent_members(listing.present, known.owned, rules.owner_id, rules.expiration))


def observe(memory: GroupMemory, listing: Listing, rules: Rules, now_s: float) -> GroupMemory:
    """Return the memory after a poll that was answered at *now_s*."""
    memory = _with_listing(_after_answer(memory, rules, now_s), listing, now_s)
    owned, present = listing.owned, listing.present
    if owned is None:
        return memory
    me, is_session = rules.owner_id, rules.lease_mode is LeaseMode.SESSION
    has_to_fence = is_session and not memory.is_grace
    silent = silent_members(present, owned, me, rules.expiration) if has_to_fence else ()
    present = _as_fenced(present, silent)
    absent_since_s = _since(memory.absent_since_s, _absent(owned, present), now_s)
    absent = _older(absent_since_s, rules.expiration, now_s)
    live = live_owners(rules, present, owned, absent, is_grace=memory.is_grace)
    suspects = contradicted(listing.leases.values(), me, owned, listing.asked_at_s)
    live.update(dict.fromkeys(listing.held - _taken_from_me(suspects, live, me), me))
    written_at = {} if is_session else last_writes(memory.written_at, owned, rules.expiration)
    members = live_members(present, {*live.values(), *written_at} | memory.spared, rules.expiration)
    members += _unrecorded(memory, absent_since_s.keys() - absent, live)
    standing_by_owner = standings(
        len(listing.partition_ids), live, members, rules, is_leaving=listing.own.member.is_leaving
    )
    group = Group(
        owner_id=me,
        partition_ids=listing.partition_ids,
        ownership_by_partition=owned.by_partition,
        as_of=owned.as_of,
        live_owner_by_partition=live,
        standing_by_owner=standing_by_owner,
        held=listing.held,
        handing_over=listing.handing_over,
        late=_older(memory.waiting_since_s, rules.handoff_timeout, now_s),
        presumed_live=presumed_live(members, present, written_at, rules.expiration),
    )
    group, expected = _with_plan(memory, listing, group, members, rules)
    membership = observe_plan_input(memory.membership, plan_input(group), rules, now_s)
    schema_age = _observe_number(memory.schema_age, group, rules, now_s)
    # Members that follow one schema have one plan, whichever members they see.
    is_unsure = (schema_age or membership).is_unstable(now_s, rules) or any(
        not lease.is_doubtful for lease in suspects
    )
    group = replace(group, is_unsure=is_unsure)
    is_leader = leads(group, members, memory.schema)
    published = None
    if is_leader and not is_unsure and not membership.is_unstable(now_s, rules):
        published = publication(group, members, memory.schema, listing.schema)
    shared = shares(group)
    outsiders = _outsiders(group, owned, present, rules)
    is_quiet = not (outsiders or silent or suspects) and _is_quiet(memory, rules)
    moved = moves(group, shared, rules.strategy)
    return replace(
        memory,
        observed=Observed(
            listing=listing,
            at_s=now_s,
            group=group,
            shares=shared,
            moves=moved,
            members=members,
            silent=silent,
            contradicted=suspects,
            outsiders=outsiders,
            is_leader=is_leader,
            publication=published,
            is_at_rest=moved.is_balanced and is_quiet and not (is_leader and group.awaited),
        ),
        absent_since_s=absent_since_s,
        written_at=written_at,
        membership=membership,
        schema_age=schema_age,
        expected=expected,
        waiting_since_s=_since(memory.waiting_since_s, shared.waits, now_s),
    )


def _with_listing(memory: GroupMemory, listing: Listing, now_s: float) -> GroupMemory:
    """Return the memory with this listing as the newest one."""
    if _shows_new_process(memory.listing, listing):
        memory = replace(memory, replaced_at_s=now_s)
    schema = highest(memory.schema, listing.schema)
    return replace(memory, listing=listing, now_s=now_s, schema=schema)


def _shows_new_process(before: Listing | None, listing: Listing) -> bool:
    """Whether an owner id has another incarnation than in the listing before."""
    known = {m.owner_id: m.incarnation for m in before.present.members} if before else {}
    return any(
        known.get(m.owner_id, m.incarnation) != m.incarnation for m in listing.present.members
    )


def _with_plan(
    memory: GroupMemory, listing: Listing, group: Group, members: Collection[Member], rules: Rules
) -> tuple[Group, ExpectedMembers]:
    """Return the group with what its plan depends on besides the owners."""
    group = with_placement(group, members, rules)
    group = replace(group, schema=followed(memory.schema, group))
    if rules.patience is None:
        return group, ExpectedMembers()
    known, now_s = memory.expected, memory.now_s
    expected = observe_expected(known, listing.expected, group.schema, members, now_s)
    awaited = expected.awaited(rules.patience, now_s)
    return replace(group, expected=expected.names, awaited=awaited), expected


def _is_quiet(memory: GroupMemory, rules: Rules) -> bool:
    """Whether every change of ownership that may follow will show in the member records first."""
    assert memory.listing is not None, "a poll was answered"
    return (
        rules.lease_mode is LeaseMode.SESSION
        and not memory.listing.handing_over
        and not memory.is_grace
        and memory.now_s - memory.replaced_at_s > rules.expiration.total_seconds()
    )


def _after_answer(memory: GroupMemory, rules: Rules, now_s: float) -> GroupMemory:
    """After an outage, start a grace in which no member is dead, and nothing is late."""
    outage = OUTAGE_EXPIRATION_FRACTION * rules.expiration
    if memory.read_at_s is not None and now_s - memory.read_at_s > outage.total_seconds():
        grace = GRACE_INTERVALS * rules.load_balancing_interval
        memory = replace(memory, grace_until_s=now_s + grace.total_seconds(), waiting_since_s={})
    return replace(memory, read_at_s=now_s)


def _since(known: Mapping[K, float], true_now: Collection[K], now_s: float) -> dict[K, float]:
    """Return since when each of these has been true."""
    return {key: known.get(key, now_s) for key in true_now}


def _absent(owned: OwnershipSnapshot, present: MembershipSnapshot) -> set[str]:
    """Return the recorded owners that have no member record."""
    owners = {o.owner_id for o in owned.ownerships if o.owner_id is not None}
    return owners - {m.owner_id for m in present.members}


def _older(since_s: Mapping[K, float], span: timedelta, now_s: float) -> frozenset[K]:
    """Return what has been true for longer than *span*."""
    return frozenset(key for key, at_s in since_s.items() if now_s - at_s > span.total_seconds())


def _as_fenced(present: MembershipSnapshot, silent: tuple[Member, ...]) -> MembershipSnapshot:
    """Return the listing as it will be when the silent members are fenced."""
    names = {member.owner_id for member in silent}
    return replace(
        present,
        members=tuple(
            replace(m, status=DEAD, last_modified=present.as_of) if m.owner_id in names else m
            for m in present.members
        ),
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


def _unrecorded(
    memory: GroupMemory, absent: Collection[str], live: Mapping[str, str]
) -> tuple[Member, ...]:
    """Return the live owners among the *absent*, with the records that they had before.

    If an operator deletes a member record, its member writes it again at its next poll. If that
    member counted as foreign until then, the others would follow another plan.
    """
    if memory.observed is None or not absent:
        return ()
    owning = set(live.values()).intersection(absent)
    return tuple(m for m in memory.observed.members if m.owner_id in owning)


def _outsiders(
    group: Group, owned: OwnershipSnapshot, present: MembershipSnapshot, rules: Rules
) -> frozenset[str]:
    """Return the live owners that my lease mode or placement does not admit."""
    mode, me = rules.lease_mode, rules.owner_id
    found = frozenset[str]()
    if mode is LeaseMode.SESSION:
        found = of_another_mode(mode, owned, present, me, expiration=rules.expiration)
    if not rules.placement.admits_foreign:
        found |= group.sharing - group.followers
    return found


def _observe_number(
    known: PlanInputObservation | None, group: Group, rules: Rules, now_s: float
) -> PlanInputObservation | None:
    """Note since when the group has followed this schema, if it follows one."""
    number = group.schema and group.schema.number
    return None if number is None else observe_plan_input(known, number, rules, now_s)


def _signature(listing: Listing, rules: Rules) -> Hashable:
    """Return a value that differs if the ownership records may have changed."""
    present = listing.present
    members = frozenset(
        (m.owner_id, m.incarnation, m.status, is_fresh(m, present, rules.expiration))
        for m in present.members
    )
    schema = listing.schema and listing.schema.etag
    return listing.partition_ids, listing.held, members, schema, listing.expected

"""What a processor remembers of its group from one poll to the next: everything "since when".

A cycle reads the records, lets ``observe`` advance this memory, and gives it to
``cycle.decide``. Both are pure. All instants are seconds on this processor's monotonic clock; what
has expired is decided by the store's clock (``liveness.py``).

==================  ===================================================  ==========================
since when          question                                             forgotten
==================  ===================================================  ==========================
``read_at_s``       did the store have an outage?                        never
``grace_until_s``   could live members not renew yet?                    when it is over
``living``          which members live of whom this listing shows less?  see ``living.py``
``membership``      have other members read the same membership?         when the members change
``waiting_since_s`` has a member had its time to let go, or to claim?    when nothing waits for it,
                                                                         and after an outage
``schema_age``      have other members read the same schema?             when its number changes
``expected``        has a member had its time to join?                   when the roster does not
                                                                         name it any more
``observed``        can the records have changed since the last poll?    at each full poll
==================  ===================================================  ==========================
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from eventproc.core.ownership.balance import Moves, Shares, moves, shares
from eventproc.core.ownership.group import Group, Wait, plan_input, standings, with_placement
from eventproc.core.ownership.lease_mode import of_another_mode, silent_members
from eventproc.core.ownership.listing import Listing
from eventproc.core.ownership.living import Living, observe_living
from eventproc.core.ownership.members.expected import ExpectedMembers, observe_expected
from eventproc.core.ownership.rules import Rules
from eventproc.core.ownership.schemas import Publication, followed, highest, leads, publication
from eventproc.core.ownership.stability import (
    PlanInputObservation,
    longer_than,
    observe_plan_input,
    since,
)
from eventproc.core.placement.schema import Schema
from eventproc.models import LeaseMode

OUTAGE_EXPIRATION_FRACTION: Final = 0.5
"""A store that did not answer for this part of the expiration had an outage."""

GRACE_INTERVALS: Final = 2
"""After an outage, for how many load-balancing intervals no member is considered dead, so that
each has time to renew."""

FULL_POLL_EXPIRATION_FRACTION: Final = 0.5
"""The ownership records are read at least this often, even if membership is unchanged: to notice
an operator's changes, and partitions that were stolen from this processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the newest listing with ownership records shows."""

    listing: Listing
    at_s: float
    group: Group
    shares: Shares
    moves: Moves
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
    living: Living = field(default_factory=Living)
    """Who is alive, by the newest listing with ownership records."""

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
        or known.listing.signature(rules.expiration) != listing.signature(rules.expiration)
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
    if listing.owned is None:
        return memory
    living = observe_living(memory.living, listing, rules, now_s, is_grace=memory.is_grace)
    memory = replace(memory, living=living)
    memory, group = _with_plan(memory, _group(memory, rules), rules)
    observed = _observed(memory, group, rules)
    waiting_since_s = since(memory.waiting_since_s, observed.shares.waits, now_s)
    return replace(memory, observed=observed, waiting_since_s=waiting_since_s)


def _after_answer(memory: GroupMemory, rules: Rules, now_s: float) -> GroupMemory:
    """After an outage, start a grace in which no member is dead, and nothing is late."""
    outage = OUTAGE_EXPIRATION_FRACTION * rules.expiration
    if memory.read_at_s is not None and now_s - memory.read_at_s > outage.total_seconds():
        grace = GRACE_INTERVALS * rules.load_balancing_interval
        memory = replace(memory, grace_until_s=now_s + grace.total_seconds(), waiting_since_s={})
    return replace(memory, read_at_s=now_s)


def _with_listing(memory: GroupMemory, listing: Listing, now_s: float) -> GroupMemory:
    """Return the memory with this listing as the newest one."""
    if listing.shows_new_process(memory.listing):
        memory = replace(memory, replaced_at_s=now_s)
    schema = highest(memory.schema, listing.schema)
    return replace(memory, listing=listing, now_s=now_s, schema=schema)


def _group(memory: GroupMemory, rules: Rules) -> Group:
    """Return the group by the newest listing, without what its plan depends on besides owners."""
    listing, living = memory.listing, memory.living
    assert listing is not None, "a poll was answered"
    assert listing.owned is not None, "it read the ownership records"
    standing_by_owner = standings(
        len(listing.partition_ids),
        living.owner_by_partition,
        living.members,
        rules,
        is_leaving=listing.own.member.is_leaving,
    )
    return Group(
        owner_id=rules.owner_id,
        partition_ids=listing.partition_ids,
        ownership_by_partition=listing.owned.by_partition,
        as_of=listing.owned.as_of,
        live_owner_by_partition=living.owner_by_partition,
        standing_by_owner=standing_by_owner,
        held=listing.held,
        handing_over=listing.handing_over,
        late=longer_than(rules.handoff_timeout, memory.waiting_since_s, memory.now_s),
        presumed_live=living.presumed,
    )


def _with_plan(memory: GroupMemory, group: Group, rules: Rules) -> tuple[GroupMemory, Group]:
    """Return the group with what its plan depends on besides owners, and since when it is so."""
    living, now_s = memory.living, memory.now_s
    group = with_placement(group, living.members, rules)
    group = replace(group, schema=followed(memory.schema, group))
    if rules.patience is not None:
        assert memory.listing is not None, "a poll was answered"
        named = memory.listing.expected
        expected = observe_expected(memory.expected, named, group.schema, living.members, now_s)
        awaited = expected.awaited(rules.patience, now_s)
        memory = replace(memory, expected=expected)
        group = replace(group, expected=expected.names, awaited=awaited)
    membership = observe_plan_input(memory.membership, plan_input(group), rules, now_s)
    schema_age = None
    if group.schema is not None:
        schema_age = observe_plan_input(memory.schema_age, group.schema.number, rules, now_s)
    # Members that follow one schema have one plan, whichever members they see.
    is_unsure = (schema_age or membership).is_unstable(now_s, rules) or any(
        not lease.is_doubtful for lease in living.contradicted
    )
    memory = replace(memory, membership=membership, schema_age=schema_age)
    return memory, replace(group, is_unsure=is_unsure)


def _observed(memory: GroupMemory, group: Group, rules: Rules) -> Observed:
    """Return what the newest listing shows of the group, and what follows for this processor."""
    listing, living, membership = memory.listing, memory.living, memory.membership
    assert listing is not None, "a poll was answered"
    assert membership is not None, "it read the ownership records"
    is_leader = leads(group, living.members, memory.schema)
    published = None
    if is_leader and not group.is_unsure and not membership.is_unstable(memory.now_s, rules):
        published = publication(group, living.members, memory.schema, listing.schema)
    shared = shares(group)
    moved = moves(group, shared, rules.strategy)
    outsiders = _outsiders(group, listing, rules)
    is_quiet = not (outsiders or living.contradicted) and _is_quiet(memory, rules)
    return Observed(
        listing=listing,
        at_s=memory.now_s,
        group=group,
        shares=shared,
        moves=moved,
        outsiders=outsiders,
        is_leader=is_leader,
        publication=published,
        is_at_rest=moved.is_balanced and is_quiet and not (is_leader and group.awaited),
    )


def _is_quiet(memory: GroupMemory, rules: Rules) -> bool:
    """Whether every change of ownership that may follow will show in the member records first."""
    assert memory.listing is not None, "a poll was answered"
    return (
        rules.lease_mode is LeaseMode.SESSION
        and not memory.listing.handing_over
        and not memory.is_grace
        and memory.now_s - memory.replaced_at_s > rules.expiration.total_seconds()
    )


def _outsiders(group: Group, listing: Listing, rules: Rules) -> frozenset[str]:
    """Return the live owners that my lease mode or placement does not admit."""
    mode, me = rules.lease_mode, rules.owner_id
    found = frozenset[str]()
    if mode is LeaseMode.SESSION:
        assert listing.owned is not None, "the ownership records were read"
        found = of_another_mode(
            mode, listing.owned, listing.present, me, expiration=rules.expiration
        )
    if not rules.placement.admits_foreign:
        found |= group.sharing - group.followers
    return found

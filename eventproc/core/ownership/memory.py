"""What a processor remembers of its group from one poll to the next: everything "since when".

A cycle reads the records, lets ``observe`` advance this memory, and gives it to
``cycle.decide``. Both are pure. All instants are seconds on this processor's monotonic clock; what
has expired is decided by the store's clock (``liveness.py``).

==================  ===================================================  ==========================
since when          question                                             forgotten
==================  ===================================================  ==========================
``grace_until_s``   could live members not renew yet?                    when it is over
``living``          which members live of whom this listing shows less?  see ``living.py``
``membership``      have other members read the same membership?         when the members change
``waiting_since_s`` has a member had its time to let go, or to claim?    when nothing waits for it,
                                                                         and after an outage
``schema_age``      have other members read the same schema?             when its number changes
``expected``        has a member had its time to join?                   when the roster does not
                                                                         name it any more
``observed``        did the store have an outage?                        at each poll
==================  ===================================================  ==========================
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from eventproc.core.ownership.balance import Moves, Shares, moves, shares
from eventproc.core.ownership.group import Group, Wait, plan_input, standings, with_placement
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

OUTAGE_EXPIRATION_FRACTION: Final = 0.5
"""A store that did not answer for this part of the expiration had an outage."""

GRACE_INTERVALS: Final = 2
"""After an outage, for how many load-balancing intervals no member is considered dead, so that
each has time to renew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the newest listing shows."""

    listing: Listing
    at_s: float
    """When it was answered."""

    group: Group
    shares: Shares
    moves: Moves
    outsiders: frozenset[str]
    """Live owners that this processor's placement does not admit."""

    is_leader: bool
    """Whether this processor leads a group that follows a published plan."""

    publication: Publication | None
    """What this processor publishes, if it leads a group that follows a published plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMemory:
    """What one processor remembers of its group."""

    observed: Observed | None = None
    """What the newest poll showed; ``None`` before the first."""

    grace_until_s: float = float("-inf")
    living: Living = field(default_factory=Living)
    """Who is alive."""

    membership: PlanInputObservation | None = None
    expected: ExpectedMembers = field(default_factory=ExpectedMembers)
    waiting_since_s: Mapping[Wait, float] = field(default_factory=dict)
    schema: Schema | None = None
    """The published plan with the highest number that was seen."""

    schema_age: PlanInputObservation | None = None
    """Since when the group has followed this schema."""

    @property
    def outsiders(self) -> frozenset[str]:
        """Live owners that this processor's placement does not admit."""
        return frozenset() if self.observed is None else self.observed.outsiders


def observe(memory: GroupMemory, listing: Listing, rules: Rules, now_s: float) -> GroupMemory:
    """Return the memory after a poll that was answered at *now_s*."""
    if _had_outage(memory, rules, now_s):
        grace = GRACE_INTERVALS * rules.load_balancing_interval
        memory = replace(memory, grace_until_s=now_s + grace.total_seconds(), waiting_since_s={})
    is_grace = now_s < memory.grace_until_s
    living = observe_living(memory.living, listing, rules, now_s, is_grace=is_grace)
    schema = highest(memory.schema, listing.schema)
    memory = replace(memory, living=living, schema=schema)
    group = _group(memory, listing, rules, now_s)
    memory, group = _with_plan(memory, group, listing, rules, now_s)
    observed = _observed(memory, group, listing, rules, now_s)
    waiting_since_s = since(memory.waiting_since_s, observed.shares.waits, now_s)
    return replace(memory, observed=observed, waiting_since_s=waiting_since_s)


def _had_outage(memory: GroupMemory, rules: Rules, now_s: float) -> bool:
    """Whether no poll was answered for so long that live members may have had no time to renew."""
    outage = OUTAGE_EXPIRATION_FRACTION * rules.expiration
    known = memory.observed
    return known is not None and now_s - known.at_s > outage.total_seconds()


def _group(memory: GroupMemory, listing: Listing, rules: Rules, now_s: float) -> Group:
    """Return the group without placement, schema and roster."""
    living = memory.living
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
        late=longer_than(rules.handoff_timeout, memory.waiting_since_s, now_s),
        presumed_live=living.presumed,
    )


def _with_plan(
    memory: GroupMemory, group: Group, listing: Listing, rules: Rules, now_s: float
) -> tuple[GroupMemory, Group]:
    """Return the group with placement, schema and roster, and since when it has had them."""
    living = memory.living
    group = with_placement(group, living.members, rules)
    group = replace(group, schema=followed(memory.schema, group))
    if rules.patience is not None:
        expected = observe_expected(
            memory.expected, listing.expected, group.schema, living.members, now_s
        )
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


def _observed(
    memory: GroupMemory, group: Group, listing: Listing, rules: Rules, now_s: float
) -> Observed:
    """Return what the newest listing shows of the group, and what follows for this processor."""
    living, membership = memory.living, memory.membership
    assert membership is not None, "the plan's input was observed"
    is_leader = leads(group, living.members, memory.schema)
    published = None
    if is_leader and not group.is_unsure and not membership.is_unstable(now_s, rules):
        published = publication(group, living.members, memory.schema, listing.schema)
    shared = shares(group)
    admits_all = rules.placement.admits_foreign
    return Observed(
        listing=listing,
        at_s=now_s,
        group=group,
        shares=shared,
        moves=moves(group, shared, rules.strategy),
        outsiders=frozenset() if admits_all else group.sharing - group.followers,
        is_leader=is_leader,
        publication=published,
    )

"""What a processor remembers of its group from one poll to the next: everything "since when".

A cycle reads the records, lets ``observe`` advance this memory, and gives it to
``cycle.decide``. Both are pure: ``observe`` states what is, ``decide`` what follows. All instants
are seconds on this processor's monotonic clock; what has expired is decided by the store's clock
(``liveness.py``).

==================  ===================================================  ==========================
since when          question                                             forgotten
==================  ===================================================  ==========================
``grace_until_s``   could live members not renew yet?                    when it is over
``living``          which members live of whom this listing shows less?  see ``living.py``
``membership``      have other members read the same membership?         when the members change
``waiting_since_s`` has a member had its time to let go, or to claim?    when nothing waits for it,
                                                                         and after an outage
``published_age``   have other members read the same published plan?       when its number changes
``expected``        has a member had its time to join?                   when the roster does not
                                                                         name it any more
==================  ===================================================  ==========================
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from eventproc._core.ownership.group import (
    WAITING,
    Group,
    Wait,
    plan_input,
    standings,
    with_placement,
)
from eventproc._core.ownership.liveness import foreign_owners
from eventproc._core.ownership.living import Listing, Living, observe_living
from eventproc._core.ownership.members import ExpectedMembers, OwnRecord, observe_expected
from eventproc._core.ownership.published_plans import followed, highest
from eventproc._core.ownership.rules import Rules
from eventproc._core.ownership.stability import (
    UNSEEN,
    PlanInputObservation,
    longer_than,
    observe_plan_input,
    since,
)
from eventproc._core.placement.published_plan import PublishedPlan
from eventproc.models import MembershipSnapshot, OwnershipSnapshot

OUTAGE_EXPIRATION_FRACTION: Final = 0.5
"""A store that answered nothing for this part of the expiration had an outage."""

UNANSWERED_EXPIRATION_FRACTION: Final = 1 / 6
"""A store that answered no write for this part of the expiration had an outage, even if it can be
read. An owner renews its records when a third of the expiration is over, so they expire two thirds
after the outage began, or later, and this processor has a write of its own to make before that."""

GRACE_INTERVALS: Final = 2
"""After an outage, for how many load-balancing intervals no member is considered dead, so that
each has time to renew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMemory:
    """What one processor knows of its group after a poll: the newest listing, and since when."""

    listing: Listing
    at_s: float
    """When the listing was answered; infinite before the first poll."""

    group: Group
    """What the listing shows."""

    foreign: frozenset[str] = frozenset()
    """Live owners without a member record: processors of an Azure SDK."""

    outsiders: frozenset[str] = frozenset()
    """Live owners that this processor's placement does not admit."""

    grace_until_s: float = float("-inf")
    living: Living = field(default_factory=Living)
    """Who is alive."""

    membership: PlanInputObservation = UNSEEN
    expected: ExpectedMembers = field(default_factory=ExpectedMembers)
    waiting_since_s: Mapping[Wait, float] = field(default_factory=dict)
    published: PublishedPlan | None = None
    """The published plan with the highest number that was seen."""

    published_age: PlanInputObservation = UNSEEN
    """Since when the group has followed this published plan."""

    def waiting_for(self, waits: Collection[Wait]) -> "GroupMemory":
        """Note what ``decide`` found to wait for."""
        return replace(self, waiting_since_s=since(self.waiting_since_s, waits, self.at_s))


def before_polls(rules: Rules, own: OwnRecord) -> GroupMemory:
    """Return the memory before the first poll: that of a group without partitions and records."""
    as_of = datetime.fromtimestamp(0, UTC)
    listing = Listing(
        partition_ids=(),
        present=MembershipSnapshot(members=(), as_of=as_of),
        owned=OwnershipSnapshot(ownerships=(), as_of=as_of),
        asked_at_s=float("-inf"),
        own=own,
        leases={},
        is_trusted=False,
    )
    group = Group(
        owner_id=rules.owner_id,
        partition_ids=(),
        ownership_by_partition={},
        as_of=as_of,
        live_owner_by_partition={},
        standing_by_owner={rules.owner_id: WAITING},
        held=frozenset(),
        placement=rules.placement,
    )
    return GroupMemory(listing=listing, at_s=float("inf"), group=group)


def observe(memory: GroupMemory, listing: Listing, rules: Rules, now_s: float) -> GroupMemory:
    """Return the memory after a poll that was answered at *now_s*."""
    if was_silent(listing, rules) or _had_write_outage(listing, rules):
        grace = GRACE_INTERVALS * rules.load_balancing_interval
        memory = replace(memory, grace_until_s=now_s + grace.total_seconds(), waiting_since_s={})
    is_grace = now_s < memory.grace_until_s
    living = observe_living(memory.living, listing, rules, now_s, is_grace=is_grace)
    published = highest(memory.published, listing.published)
    memory = replace(memory, listing=listing, at_s=now_s, living=living, published=published)
    group = with_placement(_group(memory, rules), living.members, rules)
    group = replace(group, published=followed(published, group))
    expected, awaited = memory.expected, frozenset[str]()
    if rules.patience is not None:
        expected = observe_expected(
            expected, listing.expected, group.published, living.members, now_s
        )
        awaited = expected.awaited(rules.patience, now_s)
    group = replace(group, expected=expected.names, awaited=awaited)
    membership = observe_plan_input(memory.membership, plan_input(group), rules, now_s)
    # Members that follow one published plan have one plan, whichever members they see.
    plan_age, published_age = membership, UNSEEN
    if group.published is not None:
        plan_age = published_age = observe_plan_input(
            memory.published_age, group.published.number, rules, now_s
        )
    is_unsure = plan_age.is_unstable(now_s, rules) or any(
        not lease.is_doubtful for lease in living.contradicted
    )
    admits_all = rules.placement.admits_foreign
    return replace(
        memory,
        foreign=foreign_owners(listing.owned, listing.present, rules.owner_id, rules.expiration),
        group=replace(group, is_unsure=is_unsure),
        outsiders=frozenset() if admits_all else group.sharing - group.followers,
        membership=membership,
        expected=expected,
        published_age=published_age,
    )


def was_silent(listing: Listing, rules: Rules) -> bool:
    """Whether the store answered nothing for too long; one that is slow answers all the time."""
    return listing.silence_s > (OUTAGE_EXPIRATION_FRACTION * rules.expiration).total_seconds()


def _had_write_outage(listing: Listing, rules: Rules) -> bool:
    limit = UNANSWERED_EXPIRATION_FRACTION * rules.expiration
    return listing.unanswered_s > limit.total_seconds()


def _group(memory: GroupMemory, rules: Rules) -> Group:
    """Return the group without placement, published plan and roster."""
    living, listing = memory.living, memory.listing
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
        late=longer_than(rules.handoff_timeout, memory.waiting_since_s, memory.at_s),
        presumed_live=living.presumed,
    )

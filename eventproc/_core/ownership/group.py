"""A group as one processor sees it: who owns what, and how each owner takes part.

The way in which an owner takes part decides three questions:

=============  ===================  =====================  ========================
standing       may be taken from    may be given to        is waited for
=============  ===================  =====================  ========================
COOPERATIVE    after the time-out   yes                    until it lets go
INDEPENDENT    at once              yes                    never
FOREIGN        at once              never                  until it claims its share
LEAVING        after the time-out   never                  until it lets go
WAITING        holds nothing        not yet                never
=============  ===================  =====================  ========================

The time-out is ``handoff_timeout``, from when this processor first waited for that owner.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from eventproc._core.ownership.rules import Rules
from eventproc._core.placement.even import Even
from eventproc._core.placement.names import agreed
from eventproc._core.placement.placement import GroupState, MemberFacts, Placement, rank
from eventproc._core.placement.published_plan import PublishedPlan
from eventproc.models import Member, MemberStatus, PartitionOwnership


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an owner takes part in the group."""

    has_share: bool
    """Whether the plan gives it partitions."""

    follows_plan: bool
    """Whether it computes the plan, and so claims each partition that is recorded as its own."""

    lets_go: bool
    """Whether it hands over or releases what the plan takes from it."""


COOPERATIVE: Final = Standing(has_share=True, follows_plan=True, lets_go=True)
INDEPENDENT: Final = Standing(has_share=True, follows_plan=True, lets_go=False)
"""Its strategy has no hand-over."""
FOREIGN: Final = Standing(has_share=True, follows_plan=False, lets_go=False)
LEAVING: Final = Standing(has_share=False, follows_plan=True, lets_go=True)
WAITING: Final = Standing(has_share=False, follows_plan=True, lets_go=False)
"""A standby without a vacancy."""

Wait = tuple[str, str]
"""A partition, and the owner that has to let it go or to claim it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What one processor knows of its group when it decides. "Me" and "I" are that processor."""

    owner_id: str
    partition_ids: tuple[str, ...]
    ownership_by_partition: Mapping[str, PartitionOwnership]
    """Every stored record, whatever its age."""

    as_of: datetime
    """The store's time of the listing."""

    live_owner_by_partition: Mapping[str, str]
    standing_by_owner: Mapping[str, Standing]
    """The standing of each live owner, of each live member, and of this processor."""

    held: frozenset[str]
    """The partitions that I have a lease for, or that I am handing over."""

    placement: Placement | None = field(default_factory=Even)
    """The one that the group follows; ``None`` if this processor does not have it."""

    published: PublishedPlan | None = None
    """The published plan that the group follows, if its placement is ``Published``."""

    expected: frozenset[str] = frozenset()
    """The members that a roster names."""

    awaited: frozenset[str] = frozenset()
    """The expected members that have not joined yet, and that the plan waits for."""

    facts_by_member: Mapping[str, MemberFacts] = field(default_factory=dict)
    """What the placement may use of the record of each member."""

    handing_over: frozenset[str] = frozenset()
    """The held partitions that are being handed over already."""

    late: frozenset[Wait] = frozenset()
    """The waits that have lasted longer than ``handoff_timeout``."""

    presumed_live: frozenset[str] = frozenset()
    """Members that count as alive although no record of theirs is fresh, after an outage of the
    store. They keep their share, but may be dead."""

    is_unsure: bool = False
    """Whether other members may follow another plan, or a lease of mine is contradicted."""

    @property
    def sharing(self) -> frozenset[str]:
        """The members that the plan gives a share."""
        return frozenset(o for o, s in self.standing_by_owner.items() if s.has_share)

    @property
    def followers(self) -> frozenset[str]:
        """The members with a share that follow the plan."""
        standings = self.standing_by_owner.items()
        return frozenset(o for o, s in standings if s.has_share and s.follows_plan)

    @property
    def state(self) -> GroupState:
        """What a placement sees of this group."""
        facts, unknown = self.facts_by_member, MemberFacts()
        followers = self.followers
        return GroupState(
            resources=self.partition_ids,
            owner_by_resource=self.live_owner_by_partition,
            members={
                owner_id: replace(
                    facts.get(owner_id, unknown), is_foreign=owner_id not in followers
                )
                for owner_id in self.sharing
            },
            expected=self.expected,
        )

    @property
    def is_leaving(self) -> bool:
        """Whether this processor leaves the group."""
        return self.standing_by_owner[self.owner_id] is LEAVING

    @property
    def mine(self) -> frozenset[str]:
        """The partitions that I hold, or that are recorded as mine and have not expired."""
        live = self.live_owner_by_partition.items()
        return self.held.union(p for p, owner_id in live if owner_id == self.owner_id)

    @property
    def vanished(self) -> frozenset[str]:
        """What is mine and does not exist any more: a resource that was deleted."""
        return self.mine.difference(self.partition_ids)

    def recorded_owner(self, partition_id: str) -> str | None:
        """Return the owner in a partition's record, alive or not."""
        ownership = self.ownership_by_partition.get(partition_id)
        return None if ownership is None else ownership.owner_id


def standings(
    partition_count: int,
    live_owner_by_partition: Mapping[str, str],
    members: Collection[Member],
    rules: Rules,
    *,
    is_leaving: bool,
) -> dict[str, Standing]:
    """Return how each owner and each live member takes part.

    Args:
        partition_count: How many partitions the hub has.
        live_owner_by_partition: The live owner of each partition that has one.
        members: The live members.
        rules: This processor's own.
        is_leaving: Whether this processor leaves; its record may not say so yet.
    """
    me = rules.owner_id
    member_by_owner = {member.owner_id: member for member in members}
    owner_ids = {me, *live_owner_by_partition.values(), *member_by_owner}
    leaving = {m.owner_id for m in members if m.is_leaving} - {me} | ({me} if is_leaving else set())
    standbys = {m.owner_id for m in members if m.status is MemberStatus.STANDBY}
    sharing = active_members(
        partition_count, live_owner_by_partition, owner_ids - leaving, standbys
    )
    cooperative = {m.owner_id for m in members if m.hands_over} - {me}
    if rules.strategy.lets_go:
        cooperative.add(me)

    def standing(owner_id: str) -> Standing:
        if owner_id in leaving:
            return LEAVING
        if owner_id not in sharing:
            return WAITING
        if owner_id in cooperative:
            return COOPERATIVE
        return INDEPENDENT if owner_id in member_by_owner or owner_id == me else FOREIGN

    return {owner_id: standing(owner_id) for owner_id in owner_ids}


def active_members(
    partition_count: int,
    owner_by_partition: Mapping[str, str],
    members: Collection[str],
    standbys: Collection[str],
) -> frozenset[str]:
    """Return the members that get a share: which standbys are active?

    A rolling deployment should move each partition once. If a new processor took a share from all
    members as soon as it joins, what an old processor releases a moment later would be shared by
    all members again: nearly two moves for each partition. So a new processor of another deployment
    waits in standby until there is a vacancy.

    Rule 1: as many standbys become active as owners have left. That number is computed from the
    partitions that no remaining owner holds, divided by the share of a remaining owner.
    Rule 2: a standby that holds partitions is active. So while a vacancy is filled, the same
    standbys fill it.
    Rule 3: if no other owner remains, all standbys are active.

    Worked example. 64 partitions, eight old owners with 8 each, two new processors in standby. One
    of the old ones leaves, and its 8 are vacant: that is one share. With one standby there are
    eight owners again, and each should have 8: the standby takes all that is vacant, and no other
    partition moves.

    Args:
        partition_count: How many partitions the hub has.
        owner_by_partition: The live owner of each partition that has one.
        members: All live members that are not leaving, with standbys.
        standbys: The members that wait for a vacancy.
    """
    held_count = Counter(owner_by_partition.values())
    idle = {standby for standby in standbys if not held_count[standby]}
    staying_count = sum(held_count[member] for member in members if member not in standbys)
    stayer_count = sum(held_count[member] > 0 for member in members if member not in standbys)
    if not idle or not stayer_count:
        return frozenset(members)
    filling_count = len(set(standbys)) - len(idle)
    leaver_count = len(held_count.keys() - set(members))
    to_fill = partition_count - staying_count
    share = staying_count // stayer_count
    least, most = -(-to_fill // (share + 1)), to_fill // share
    wanted_count = min(max(filling_count, leaver_count, least), max(most, least))
    chosen = sorted(idle, key=lambda name: (rank(name), name))
    return frozenset(members) - frozenset(chosen[max(0, wanted_count - filling_count) :])


def with_placement(group: Group, members: Collection[Member], rules: Rules) -> Group:
    """Return the group with the placement that it follows, and the facts that a placement uses."""
    facts_by_member = {m.owner_id: MemberFacts.of(m) for m in members} | {
        rules.owner_id: rules.facts
    }
    followers = group.followers
    names = [m.placement for m in members if m.owner_id in followers - {rules.owner_id}]
    if rules.owner_id in followers:
        names.append(rules.placement.name)
    placement = agreed(names, rules.placement)
    if placement is not None and not placement.admits_foreign and followers != group.sharing:
        placement = Even()
    return replace(group, placement=placement, facts_by_member=facts_by_member)


def plan_input(group: Group) -> Hashable:
    """What the plan depends on besides the owners."""
    unknown = MemberFacts()
    facts = (
        (m, replace(group.facts_by_member.get(m, unknown), deployment_id="")) for m in group.sharing
    )
    return group.placement, frozenset(facts)

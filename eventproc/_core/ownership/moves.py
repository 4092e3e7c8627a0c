"""From the plan to this processor's moves: what to claim, steal and hand over in this cycle.

Rule 1: a processor writes only the records of partitions that the plan gives to it, and of those
that it holds and the plan gives to another member.
Rule 2: with any strategy there is at most one steal in each cycle, and only from an owner that
does not hand over, or that still has the partition ``handoff_timeout`` after the plan changed.
Rule 3: ``BALANCED`` makes at most one claim or steal in each cycle.
Rule 4: a leaving member hands over by itself, so nothing is stolen from it before
``handoff_timeout``.
Rule 5: just after the membership changed, this processor begins no claim, steal or hand-over: other
members may not have read the change yet, and would follow another plan.
The same holds while a listing contradicts one of its leases: the next listing shows what is right.
A resource that does not exist any more is released at once, because no plan has it.
Rule 6: a processor that leaves claims nothing. Everything that it holds is surplus.
Rule 7: a hand-over goes only to a member with a fresh record: the write would make a dead member
look alive for another expiration. What the plan gives to a member that may be dead stays with its
owner; an owner that leaves releases it.
Rule 8: a partition that a foreign member has not claimed for longer than ``handoff_timeout`` is
assigned to a member that follows the plan, as if there were no foreign members. These members
share such partitions evenly, until a foreign member steals one. Foreign members follow rules of
their own: one SDK claims less than its share, another never sees partitions that were added to the
hub, and any processor may hang.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eventproc._core.ownership.group import Group, Wait
from eventproc._core.ownership.lease import next_epoch
from eventproc._core.ownership.published_plans import (
    is_awaited,
    next_plan,
    published_plan,
    unplaced_resources,
)
from eventproc._core.placement.even import even_plan
from eventproc._core.placement.placement import rank
from eventproc._core.placement.plan import backed_up_by, plan
from eventproc._core.placement.published import Published
from eventproc.models import LoadBalancingStrategy, OwnershipClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan, and what still has to happen before the records agree with it."""

    owner_by_partition: Mapping[str, str]
    """The whole plan."""

    waits: frozenset[Wait]
    """Each partition planned for me, with the live owner that has to let go of it; and each one
    planned for a foreign member that has not claimed it yet, with that member."""

    unclaimed: frozenset[str]
    """Partitions planned for foreign members that these have not claimed."""

    unplaced: frozenset[str] = frozenset()
    """Partitions that the plan gives to no member, because of the members' capacities."""

    backed_up: frozenset[str] = frozenset()
    """Partitions of other owners whose backup this processor is."""

    is_awaited: bool = False
    """Whether the leader has to publish another plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What to do with partitions in this cycle."""

    claims: tuple[OwnershipClaim, ...] = ()
    """Partitions without a live owner, and partitions that are recorded as mine already."""

    steal: OwnershipClaim | None = None
    hand_overs: Mapping[str, str | None] = field(default_factory=dict)
    """For each surplus partition that I hold: the new owner, or ``None`` to release it."""

    is_balanced: bool = False
    """Whether the plan requires no change by this processor, and the leader publishes no other."""

    @property
    def taken(self) -> tuple[OwnershipClaim, ...]:
        """The claims, and the steal if there is one."""
        return (*self.claims, self.steal) if self.steal else self.claims


def plan_for(group: Group) -> Plan:
    """Compute the plan. What foreign members have not claimed in time goes to other members."""
    live, followers = group.live_owner_by_partition, group.followers
    foreign = group.sharing - followers
    planned = _plan(group)
    unclaimed = frozenset(p for p, o in planned.items() if o in foreign and live.get(p) != o)
    waits = {(p, planned[p]) for p in unclaimed}
    planned |= _reassigned(group, frozenset(p for p, owner in waits & group.late))
    waits |= {
        (p, live[p])
        for p, owner_id in planned.items()
        if owner_id == group.owner_id and live.get(p, owner_id) != owner_id
    }
    return Plan(
        owner_by_partition=planned,
        waits=frozenset(waits),
        unclaimed=unclaimed,
        unplaced=_unplaced(group, planned),
        is_awaited=is_awaited(group),
        backed_up=_backed_up(group, planned),
    )


def _plan(group: Group) -> dict[str, str]:
    if group.placement is None:
        # Without the placement this processor cannot know what should move.
        return dict(group.live_owner_by_partition)
    if isinstance(group.placement, Published):
        # The leader has not published a plan without me yet: hand over as it probably will.
        is_guessed = group.is_leaving and is_awaited(group) and group.placement.can_lead
        return next_plan(group, group.placement) if is_guessed else published_plan(group)
    return plan(group.state, group.placement)


def _unplaced(group: Group, planned: Mapping[str, str]) -> frozenset[str]:
    if isinstance(group.placement, Published):
        return unplaced_resources(group)
    is_planned = group.placement is not None and group.sharing
    return frozenset(group.partition_ids) - planned.keys() if is_planned else frozenset()


def _backed_up(group: Group, planned: Mapping[str, str]) -> frozenset[str]:
    if group.placement is None:
        return frozenset()
    return backed_up_by(group.owner_id, planned, group.state, group.placement)


def _reassigned(group: Group, unclaimed: frozenset[str]) -> dict[str, str]:
    """Return other owners for the partitions that foreign members have not claimed in time.

    It is the even plan for the followers alone, of all partitions that no foreign member owns: so
    the followers with the fewest partitions get more. Only foreign members need this: a member that
    follows the plan claims its share unless it is dead. If others claimed the share of a dead one,
    they would hand it over to that one at once, and these writes would make it look alive.
    """
    if not unclaimed:
        return {}
    live, open_to = group.live_owner_by_partition, {None, *group.followers}
    left = [p for p in group.partition_ids if live.get(p) in open_to]
    owned = {p: live[p] for p in left if p in live}
    fallback = even_plan(left, owned, group.followers)
    return {p: fallback[p] for p in unclaimed if p in fallback}


def moves(group: Group, whole: Plan, strategy: LoadBalancingStrategy) -> Moves:
    """Return this processor's moves in one cycle."""
    me, live = group.owner_id, group.live_owner_by_partition
    planned = whole.owner_by_partition
    if group.is_leaving:
        return _leave(group, planned, strategy)
    due = [
        p
        for p in group.partition_ids
        if p not in group.held
        and (planned.get(p) == me or (p in whole.unclaimed and live.get(p) == me))
    ]
    resumed = [p for p in due if group.recorded_owner(p) == me]
    orphans = [p for p in due if p not in live and p not in resumed]
    stealable = [p for p in due if _is_stealable(group, p)]
    if strategy is LoadBalancingStrategy.BALANCED:
        orphans = sorted(orphans, key=rank)[:1]
        stealable = [] if orphans else stealable
    steal = min(stealable, key=rank, default=None)
    hand_overs = _surplus(group, planned, strategy)
    is_balanced = not due and not hand_overs and not whole.is_awaited
    if group.is_unsure:
        orphans, steal = [], None
        begun = group.handing_over | group.vanished
        hand_overs = {p: to for p, to in hand_overs.items() if p in begun}
    doubtful = group.presumed_live
    hand_overs = {p: to for p, to in hand_overs.items() if planned.get(p) not in doubtful}
    return Moves(
        claims=tuple(_claim(group, p) for p in [*resumed, *orphans]),
        steal=None if steal is None else _claim(group, steal),
        hand_overs=hand_overs,
        is_balanced=is_balanced,
    )


def _leave(group: Group, planned: Mapping[str, str], strategy: LoadBalancingStrategy) -> Moves:
    """Return the moves of a processor that leaves: hand over or release all that it owns."""
    given = _surplus(group, planned, strategy)
    targets = {p: given.get(p) for p in sorted(group.mine)}
    hand_overs = {p: None if to in group.presumed_live else to for p, to in targets.items()}
    return Moves(hand_overs=hand_overs, is_balanced=not hand_overs)


def _is_stealable(group: Group, partition_id: str) -> bool:
    """Whether a live owner has the partition, and does not hand over, or did not in time."""
    owner_id = group.live_owner_by_partition.get(partition_id)
    if owner_id is None or owner_id == group.owner_id:
        return False
    lets_go = group.standing_by_owner[owner_id].lets_go
    return not lets_go or (partition_id, owner_id) in group.late


def _surplus(
    group: Group, planned: Mapping[str, str], strategy: LoadBalancingStrategy
) -> dict[str, str | None]:
    """Return the partitions of mine that the plan gives to another member, with their new owners.

    The owner ``None`` releases a partition. A resource that was deleted is always released.
    What the plan gives to a foreign member stays mine until that member steals it.
    """
    mine, me = group.mine, group.owner_id
    vanished: dict[str, str | None] = dict.fromkeys(sorted(group.vanished))
    if not strategy.lets_go or planned == group.live_owner_by_partition:
        return vanished  # The common case: already balanced.
    is_release = strategy is LoadBalancingStrategy.RELEASE
    return vanished | {
        p: None if is_release else target
        for p, target in planned.items()
        if p in mine
        and target != group.live_owner_by_partition.get(p)
        and target != me
        and group.standing_by_owner[target].follows_plan
    }


def _claim(group: Group, partition_id: str) -> OwnershipClaim:
    ownership = group.ownership_by_partition.get(partition_id)
    return OwnershipClaim(
        partition_id=partition_id,
        owner_id=group.owner_id,
        expected_etag=None if ownership is None else ownership.etag,
        epoch=next_epoch(ownership, group.as_of),
    )

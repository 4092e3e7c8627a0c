"""From the plan to this processor's actions: what to claim, steal and hand over in this cycle.

Rule 1: a processor writes only the records of partitions that the plan gives to it, and of those
that it holds and the plan gives to another member.
Rule 2: with any strategy there is at most one steal in each cycle, and only from an owner that
does not hand over, or that has kept a partition for ``handoff_timeout`` after the plan took it.
Rule 3: ``BALANCED`` makes at most one claim or steal in each cycle.
Rule 4: a leaving member hands over by itself, so nothing is stolen from it before
``handoff_timeout``.
Rule 5: just after the membership changed, no claim, steal or hand-over begins. Other members may
not have read the change yet and would follow another plan; soon all of them follow the same one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eventproc.core.plan import plan, rank
from eventproc.core.unclaimed import awaiting_claim, fallback_owners
from eventproc.models import LoadBalancingStrategy, OwnershipClaim, PartitionOwnership


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """What one processor knows when it decides. "Me" and "I" are that processor."""

    owner_id: str
    partition_ids: tuple[str, ...]
    ownership_by_partition: Mapping[str, PartitionOwnership]
    """Every stored record, whatever its age."""

    live_owner_by_partition: Mapping[str, str]
    members: frozenset[str]
    """The members that the plan gives a share."""

    cooperative: frozenset[str]
    """Members, including leaving ones, that hand over what the plan takes from them."""

    held: frozenset[str]
    """The partitions that this processor has a lease for."""

    overdue: frozenset[str] = frozenset()
    """Partitions planned for me that their owner has kept for longer than ``handoff_timeout``."""

    leaving: frozenset[str] = frozenset()
    """Owners with the status *leaving*; they release or hand over what they hold."""

    present: frozenset[str] = frozenset()
    """Owners with a member record: they follow this plan with any strategy, and claim each
    partition that is recorded as theirs."""

    unclaimed: frozenset[str] = frozenset()
    """Partitions planned for foreign members that these have not claimed in time."""

    handing_over: frozenset[str] = frozenset()
    """The held partitions that are being handed over already."""

    is_unstable: bool = False
    """Whether the membership changed so recently that other members may not have read it."""

    @property
    def followers(self) -> frozenset[str]:
        """Members that follow the plan."""
        return self.members & (self.cooperative | self.present)


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipObservation:
    """Since when, on this processor's clock, the group has had these members."""

    members: frozenset[str]
    since_s: float
    unstable_since_s: float
    """Since when the members have kept changing."""

    def is_unstable(self, now_s: float, *, stable_after_s: float, wait_max_s: float) -> bool:
        """Whether to wait before acting: the membership is new, and the wait has not been long."""
        is_new = now_s - self.since_s < stable_after_s
        return is_new and now_s - self.unstable_since_s < wait_max_s


def observe_members(
    known: MembershipObservation | None,
    members: frozenset[str],
    now_s: float,
    *,
    stable_after_s: float,
) -> MembershipObservation:
    """Note since when the group has had these members."""
    if known is not None and known.members == members:
        return known
    lasted = known is None or now_s - known.since_s >= stable_after_s
    unstable_since_s = now_s if lasted or known is None else known.unstable_since_s
    return MembershipObservation(members=members, since_s=now_s, unstable_since_s=unstable_since_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """What to do in this cycle."""

    owner_by_partition: Mapping[str, str]
    """The whole plan."""

    claims: tuple[OwnershipClaim, ...]
    """Partitions without a live owner, and partitions that are recorded as mine already."""

    steal: OwnershipClaim | None
    hand_overs: Mapping[str, str | None]
    """For each surplus partition that I hold: the new owner, or ``None`` to release it."""

    others: tuple[str, ...]
    """The other members that accept a hand-over."""

    awaiting_claim: frozenset[str]
    """Partitions planned for foreign members that these have not claimed."""

    is_balanced: bool
    """Whether the plan asks no change of this processor."""


def decide(view: GroupView, strategy: LoadBalancingStrategy) -> Actions:
    """Return this processor's actions in one cycle."""
    me = view.owner_id
    live, foreign = view.live_owner_by_partition, view.members - view.followers
    planned = plan(view.partition_ids, live, view.members, foreign=foreign)
    waiting = awaiting_claim(planned, live, foreign)
    planned |= _reassigned(view, waiting)
    due = [
        p
        for p in view.partition_ids
        if p not in view.held and (planned.get(p) == me or (p in waiting and live.get(p) == me))
    ]
    resumed = [p for p in due if _recorded_owner(view, p) == me]
    orphans = [p for p in due if p not in view.live_owner_by_partition and p not in resumed]
    stealable = [p for p in due if _is_stealable(view, p)]
    if strategy is LoadBalancingStrategy.BALANCED:
        orphans = sorted(orphans, key=rank)[:1]
        stealable = [] if orphans else stealable
    steal = min(stealable, key=rank, default=None)
    hand_overs = _surplus(view, planned) if strategy is LoadBalancingStrategy.COOPERATIVE else {}
    is_balanced = not due and not hand_overs
    if view.is_unstable:
        orphans, steal = [], None
        hand_overs = {p: to for p, to in hand_overs.items() if p in view.handing_over}
    return Actions(
        owner_by_partition=planned,
        claims=tuple(_claim(view, p) for p in [*resumed, *orphans]),
        steal=None if steal is None else _claim(view, steal),
        hand_overs=hand_overs,
        others=tuple(sorted(view.members & view.cooperative - {view.owner_id})),
        awaiting_claim=waiting,
        is_balanced=is_balanced,
    )


def _reassigned(view: GroupView, waiting: frozenset[str]) -> dict[str, str]:
    """Return other owners for the partitions that foreign members have not claimed in time.

    Members that follow the plan need no such rule: they claim their share unless they are dead.
    Partitions claimed in place of a dead follower would be handed over to it, and these new
    records would make it look alive.
    """
    unclaimed = waiting & view.unclaimed
    if not unclaimed or not view.followers:
        return {}
    fallback_by_partition = fallback_owners(
        view.partition_ids, view.live_owner_by_partition, view.followers
    )
    return {p: fallback_by_partition[p] for p in unclaimed if p in fallback_by_partition}


def due_since_s(
    known: Mapping[tuple[str, str], float],
    planned: Mapping[str, str],
    view: GroupView,
    now_s: float,
) -> dict[tuple[str, str], float]:
    """Return since when each partition that is planned for me has had another live owner.

    The keys are pairs of partition and owner: the time starts again with a new owner.
    """
    kept = [
        (p, view.live_owner_by_partition.get(p, view.owner_id))
        for p, owner_id in planned.items()
        if owner_id == view.owner_id
    ]
    return {
        (p, keeper): known.get((p, keeper), now_s) for p, keeper in kept if keeper != view.owner_id
    }


def _recorded_owner(view: GroupView, partition_id: str) -> str | None:
    ownership = view.ownership_by_partition.get(partition_id)
    return None if ownership is None else ownership.owner_id


def _is_stealable(view: GroupView, partition_id: str) -> bool:
    """Whether another live owner has it that does not hand over, or did not in time."""
    owner_id = view.live_owner_by_partition.get(partition_id)
    if owner_id is None or owner_id == view.owner_id:
        return False
    lets_go = owner_id in view.cooperative or owner_id in view.leaving
    return not lets_go or partition_id in view.overdue


def _surplus(view: GroupView, planned: Mapping[str, str]) -> dict[str, str | None]:
    """What I hold, or am recorded to own, that the plan gives to a member that accepts hand-overs.

    I keep what the plan gives to a foreign member, and serve it until that member steals it.
    """
    if planned == view.live_owner_by_partition:
        return {}  # The common case: already balanced.
    return {
        p: target
        for p, target in planned.items()
        if target != view.owner_id
        and (target in view.cooperative or target in view.present)
        and (p in view.held or view.live_owner_by_partition.get(p) == view.owner_id)
    }


def _claim(view: GroupView, partition_id: str) -> OwnershipClaim:
    ownership = view.ownership_by_partition.get(partition_id)
    return OwnershipClaim(
        partition_id=partition_id,
        owner_id=view.owner_id,
        expected_etag=None if ownership is None else ownership.etag,
    )

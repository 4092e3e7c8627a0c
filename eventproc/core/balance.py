"""From the plan to my own lines of it: what to claim, to steal and to hand over in this cycle.

Rule 1: a processor touches only what the plan gives to it, and what it holds and must give.
Rule 2: at most one steal in each cycle, whatever the strategy, and only from an owner that does
not hand over, or that kept what the plan takes from it for longer than it was given.
Rule 3: ``BALANCED`` makes at most one claim or steal in each cycle.
Rule 4: who leaves is not robbed: it lets go by itself, or is robbed when it did not in time.
Rule 5: just after the membership changed nobody begins anything. Others may not have seen the
change yet, and would carry out another plan; a moment later all of them follow the same one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eventproc.core.neglect import awaited, heirs
from eventproc.core.plan import plan, rank
from eventproc.models import LoadBalancingStrategy, OwnershipClaim, PartitionOwnership


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one processor knows when it decides."""

    owner_id: str
    partition_ids: tuple[str, ...]
    ownership_by_partition: Mapping[str, PartitionOwnership]
    """Every stored record, whatever its age."""

    live_owner_by_partition: Mapping[str, str]
    members: frozenset[str]
    """Everybody who shall have a share."""

    cooperative: frozenset[str]
    """Members, leaving ones too, that hand over what they have to give."""

    held: frozenset[str]
    """The partitions whose lease this processor keeps."""

    overdue: frozenset[str] = frozenset()
    """Partitions due to me that an owner who should let go kept for longer than it may."""

    leaving: frozenset[str] = frozenset()
    """Owners that said they go; they let go of what they have."""

    present: frozenset[str] = frozenset()
    """Whoever has written presence: it follows this plan, whatever its strategy, and takes up
    what is recorded in its name."""

    neglected: frozenset[str] = frozenset()
    """Partitions that foreign owners, for whom they are planned, have not come for in time."""

    handing_over: frozenset[str] = frozenset()
    """Partitions of those held that are being handed over already."""

    is_settling: bool = False
    """Whether the membership changed so lately that others may not have seen it."""

    @property
    def followers(self) -> frozenset[str]:
        """Members that follow the plan."""
        return self.members & (self.cooperative | self.present)


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSighting:
    """Since when, on my own clock, the group has had these members."""

    members: frozenset[str]
    since_s: float
    restless_since_s: float
    """Since when no membership has lasted."""

    def is_settling(self, now_s: float, *, settled_after_s: float, most_s: float) -> bool:
        """Whether it is too new to act upon; in a group that never rests, not for ever."""
        is_new = now_s - self.since_s < settled_after_s
        return is_new and now_s - self.restless_since_s < most_s


def see_members(
    known: MembershipSighting | None,
    members: frozenset[str],
    now_s: float,
    *,
    settled_after_s: float,
) -> MembershipSighting:
    """Note since when the group has had these members."""
    if known is not None and known.members == members:
        return known
    lasted = known is None or now_s - known.since_s >= settled_after_s
    restless_since_s = now_s if lasted or known is None else known.restless_since_s
    return MembershipSighting(members=members, since_s=now_s, restless_since_s=restless_since_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What to do in this cycle."""

    owner_by_partition: Mapping[str, str]
    """The whole plan."""

    claims: tuple[OwnershipClaim, ...]
    """Partitions that nobody owns, or that are recorded as mine already."""

    steal: OwnershipClaim | None
    hand_overs: Mapping[str, str | None]
    """For each surplus partition that I hold: the new owner, or ``None`` to release it."""

    others: tuple[str, ...]
    """Members that could be given a partition, whatever the plan says."""

    awaited: frozenset[str]
    """What is planned for foreign owners that have not come for it."""

    is_settled: bool
    """Whether nothing that concerns this processor still has to change."""


def decide(view: View, strategy: LoadBalancingStrategy) -> Moves:
    """Return what this processor does about the plan in one cycle."""
    me = view.owner_id
    live, foreign = view.live_owner_by_partition, view.members - view.followers
    planned = plan(view.partition_ids, live, view.members, foreign=foreign)
    waiting = awaited(planned, live, foreign)
    planned |= _inherited(view, waiting)
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
    is_settled = not due and not hand_overs
    if view.is_settling:
        orphans, steal = [], None
        hand_overs = {p: to for p, to in hand_overs.items() if p in view.handing_over}
    return Moves(
        owner_by_partition=planned,
        claims=tuple(_claim(view, p) for p in [*resumed, *orphans]),
        steal=None if steal is None else _claim(view, steal),
        hand_overs=hand_overs,
        others=tuple(sorted(view.members & view.cooperative - {view.owner_id})),
        awaited=waiting,
        is_settled=is_settled,
    )


def _inherited(view: View, waiting: frozenset[str]) -> dict[str, str]:
    """Who shall have what foreign owners have not come for in time.

    One that follows the plan comes, or is dead. Its share, taken by others, would be handed back to
    it, which made the dead one look alive again.
    """
    neglected = waiting & view.neglected
    if not neglected or not view.followers:
        return {}
    heir_by_partition = heirs(view.partition_ids, view.live_owner_by_partition, view.followers)
    return {p: heir_by_partition[p] for p in neglected if p in heir_by_partition}


def due_since_s(
    known: Mapping[tuple[str, str], float], planned: Mapping[str, str], view: View, now_s: float
) -> dict[tuple[str, str], float]:
    """Note since when each partition that is due to me is kept, and by which live owner.

    Another owner has all its time before it: it cannot help how long the former one took.
    """
    kept = [
        (p, view.live_owner_by_partition.get(p, view.owner_id))
        for p, owner_id in planned.items()
        if owner_id == view.owner_id
    ]
    return {
        (p, keeper): known.get((p, keeper), now_s) for p, keeper in kept if keeper != view.owner_id
    }


def _recorded_owner(view: View, partition_id: str) -> str | None:
    ownership = view.ownership_by_partition.get(partition_id)
    return None if ownership is None else ownership.owner_id


def _is_stealable(view: View, partition_id: str) -> bool:
    """Whether a live other owner has it who will not let go, or did not in time."""
    owner_id = view.live_owner_by_partition.get(partition_id)
    if owner_id is None or owner_id == view.owner_id:
        return False
    lets_go = owner_id in view.cooperative or owner_id in view.leaving
    return not lets_go or partition_id in view.overdue


def _surplus(view: View, planned: Mapping[str, str]) -> dict[str, str | None]:
    """What I hold, or am recorded to own, that the plan gives to somebody who takes a hand-over.

    What it gives to a foreign owner stays: that one will steal it, and until then it is read.
    """
    if planned == view.live_owner_by_partition:
        return {}  # Everything is where it shall be, as it mostly is.
    return {
        p: target
        for p, target in planned.items()
        if target != view.owner_id
        and (target in view.cooperative or target in view.present)
        and (p in view.held or view.live_owner_by_partition.get(p) == view.owner_id)
    }


def _claim(view: View, partition_id: str) -> OwnershipClaim:
    ownership = view.ownership_by_partition.get(partition_id)
    return OwnershipClaim(
        partition_id=partition_id,
        owner_id=view.owner_id,
        expected_etag=None if ownership is None else ownership.etag,
    )

"""Groups of members and owners as input of the plan: examples, and hypothesis strategies."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hypothesis import strategies as st

from eventproc._core.ownership import group
from eventproc._core.ownership.moves import Moves, moves, plan_for
from eventproc.models import LoadBalancingStrategy, PartitionOwnership

NOW = datetime(2026, 1, 1, tzinfo=UTC)
names = st.text("abcdefgh0123456789-", min_size=1, max_size=6)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Partitions, their live owners and the members: what a plan is computed from."""

    partition_ids: tuple[str, ...]
    owner_by_partition: dict[str, str]
    members: frozenset[str]
    foreign: frozenset[str] = frozenset()

    def counts(self) -> dict[str, int]:
        """The number of partitions that each member holds."""
        held = [self.owner_by_partition.get(p) for p in self.partition_ids]
        return {member: held.count(member) for member in self.members}

    @property
    def is_balanced(self) -> bool:
        """Whether every partition is owned by a member, and counts differ by one at most."""
        counts = self.counts().values()
        return sum(counts) == len(self.partition_ids) and max(counts) - min(counts) <= 1

    @property
    def leaving(self) -> frozenset[str]:
        """Owners that are not members any more."""
        return frozenset(self.owner_by_partition.values()) - self.members

    def view(
        self,
        me: str,
        *,
        cooperative: frozenset[str],
        present: frozenset[str] = frozenset(),
        overdue: frozenset[str] = frozenset(),
        unclaimed: frozenset[str] = frozenset(),
        held: frozenset[str] | None = None,
    ) -> group.Group:
        """The group as one member sees it; by default it holds the partitions that name it.

        Args:
            me: The member.
            cooperative: The members that hand over.
            present: Other members with a member record; the rest is foreign.
            overdue: Partitions that their owners have kept for too long.
            unclaimed: Partitions that no foreign member has claimed in time.
            held: The partitions that *me* has a lease for.
        """

        def standing(owner_id: str) -> group.Standing:
            if owner_id not in self.members:
                return group.LEAVING
            if owner_id in cooperative:
                return group.COOPERATIVE
            follows = owner_id in {*present, me} - self.foreign
            return group.INDEPENDENT if follows else group.FOREIGN

        standings = {o: standing(o) for o in {me, *self.members, *self.leaving}}
        foreign = [o for o, s in standings.items() if s is group.FOREIGN]
        mine = frozenset(p for p, owner_id in self.owner_by_partition.items() if owner_id == me)
        return group.Group(
            owner_id=me,
            partition_ids=self.partition_ids,
            ownership_by_partition={
                p: PartitionOwnership(
                    partition_id=p, owner_id=owner_id, etag=f"{p}:{owner_id}", last_modified=NOW
                )
                for p, owner_id in self.owner_by_partition.items()
            },
            as_of=NOW,
            live_owner_by_partition=self.owner_by_partition,
            standing_by_owner=standings,
            held=mine if held is None else held,
            late=frozenset(
                [(p, o) for p, o in self.owner_by_partition.items() if p in overdue]
                + [(p, o) for p in unclaimed for o in foreign]
            ),
        )

    def moved(self, new_owner_by_partition: dict[str, str]) -> "Group":
        """The group after these partitions got new owners."""
        return self.with_owners({**self.owner_by_partition, **new_owner_by_partition})

    def with_owners(self, owner_by_partition: dict[str, str]) -> "Group":
        """The group with these owners instead of its own."""
        return replace(self, owner_by_partition=owner_by_partition)


@dataclass(frozen=True, kw_only=True)
class Decision(Moves):
    """The moves of a processor, and the plan that they follow."""

    owner_by_partition: Mapping[str, str]
    waits: frozenset[group.Wait]


def decide(view: group.Group, strategy: LoadBalancingStrategy) -> Decision:
    """Compute the plan and one processor's moves."""
    plan = plan_for(view)
    moved = moves(view, plan, strategy)
    return Decision(
        claims=moved.claims,
        steal=moved.steal,
        hand_overs=moved.hand_overs,
        is_balanced=moved.is_balanced,
        owner_by_partition=plan.owner_by_partition,
        waits=plan.waits,
    )


@st.composite
def groups(draw, *, has_leaving: bool = True, foreign: bool = True, members_min: int = 1):
    """Draw a group: some owners are leaving, some members own nothing, some partitions are free."""
    partition_ids = tuple(draw(st.lists(names, min_size=1, max_size=30, unique=True)))
    owner_candidates = draw(st.lists(names, min_size=members_min, max_size=9, unique=True))
    count = (
        draw(st.integers(members_min, len(owner_candidates)))
        if has_leaving
        else len(owner_candidates)
    )
    members = frozenset(owner_candidates[:count])
    owner_ids = draw(
        st.lists(
            st.sampled_from([None, *owner_candidates]),
            min_size=len(partition_ids),
            max_size=len(partition_ids),
        )
    )
    owned = {p: o for p, o in zip(partition_ids, owner_ids, strict=True) if o is not None}
    foreign_members = (
        draw(st.frozensets(st.sampled_from(sorted(members)))) if foreign else frozenset()
    )
    return Group(
        partition_ids=partition_ids,
        owner_by_partition=owned,
        members=members,
        foreign=foreign_members,
    )


def group_holding(partition_count: int, holdings: list[int]) -> Group:
    """A group whose members "o0", "o1", ... hold so many partitions each; the rest is free."""
    partition_ids = tuple(str(number) for number in range(partition_count))
    left = list(partition_ids)
    owned = {}
    for number, count in enumerate(holdings):
        for partition_id in left[:count]:
            owned[partition_id] = f"o{number}"
        del left[:count]
    members = frozenset(f"o{number}" for number in range(len(holdings)))
    return Group(partition_ids=partition_ids, owner_by_partition=owned, members=members)

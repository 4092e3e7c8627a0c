"""Every small group: up to six partitions, and four owners that stay, leave or are foreign.

By default owners are interchangeable (the last ones leave), and groups with foreign owners have
four partitions at most. ``HYPOTHESIS_PROFILE=night`` runs all groups, which takes minutes.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product

import pytest
from hypothesis import settings

from eventproc._core.placement.even import even_plan
from eventproc.models import LoadBalancingStrategy
from tests.unit.eventproc._core.ownership.groups import Group, decide

OWNERS = ("a", "b", "c", "d")
IS_COMPLETE = settings.get_current_profile_name() == "night"


def subsets(names: tuple[str, ...]) -> Iterator[frozenset[str]]:
    """Every set of these names."""
    for size in range(len(names) + 1):
        yield from map(frozenset, combinations(names, size))


def memberships() -> list[frozenset[str]]:
    """The owners that stay, in each way that counts; the others leave."""
    if IS_COMPLETE:
        return [members for members in subsets(OWNERS) if members]
    return [frozenset(OWNERS[:count]) for count in range(1, len(OWNERS) + 1)]


def worlds(partition_count: int, members: frozenset[str], foreign: frozenset[str]):
    """Every group with so many partitions: each owned by any owner, or by none."""
    partition_ids = tuple(str(number) for number in range(partition_count))
    for owners in product(("", *OWNERS), repeat=partition_count):
        owned = {p: owner for p, owner in zip(partition_ids, owners, strict=True) if owner}
        yield (
            owners,
            Group(
                partition_ids=partition_ids,
                owner_by_partition=owned,
                members=members,
                foreign=foreign,
            ),
        )


def planned(group: Group) -> tuple[str, ...]:
    """The planned owners, in the order of the partitions."""
    after = even_plan(
        group.partition_ids, group.owner_by_partition, group.members, foreign=group.foreign
    )
    return tuple(after[p] for p in group.partition_ids)


@cache
def fewest_moves(partition_count: int, counts: tuple[int, ...]) -> int:
    """The theoretical minimum, by trying every choice of members with an extra partition."""
    minimum, extra_count = divmod(partition_count, len(counts))
    return min(
        sum(max(0, count - minimum - (n in extras)) for n, count in enumerate(counts))
        for extras in combinations(range(len(counts)), extra_count)
    )


def check(plan_by_owners: dict[tuple[str, ...], tuple[str, ...]], members: frozenset[str]) -> None:
    """Check the plans of all groups that have the same members."""
    names = sorted(members)
    for owners, after in plan_by_owners.items():
        sizes = [after.count(name) for name in names]
        moved = [n for n, owner in enumerate(owners) if owner != after[n]]
        left = sum(owners[n] in members for n in moved)

        assert sum(sizes) == len(owners)
        assert max(sizes) - min(sizes) <= 1
        assert left == fewest_moves(len(owners), tuple(owners.count(name) for name in names))
        for n in moved:
            # After one move or release of the plan, the plan of the rest is the same.
            # As this is every group, it holds after any number of steps in any order.
            for owner in (after[n], ""):
                assert plan_by_owners[*owners[:n], owner, *owners[n + 1 :]] == after


@pytest.mark.parametrize("partition_count", range(1, 7))
def test_every_plan_is_balanced_minimal_and_stable(partition_count):
    """Without foreign owners: in whatever order it is carried out, no partition moves twice."""
    for members in memberships():
        group_by_owners = dict(worlds(partition_count, members, frozenset()))
        check({owners: planned(group) for owners, group in group_by_owners.items()}, members)


@pytest.mark.parametrize("partition_count", range(1, 7 if IS_COMPLETE else 5))
def test_foreign_owners_change_neither_balance_nor_the_number_of_moves(partition_count):
    """They only decide which of equal members get and give partitions."""
    for members in memberships():
        for foreign in subsets(tuple(sorted(members))):
            group_by_owners = dict(worlds(partition_count, members, foreign))
            check({owners: planned(group) for owners, group in group_by_owners.items()}, members)


@pytest.mark.parametrize("partition_count", range(1, 6 if IS_COMPLETE else 5))
def test_the_plan_does_not_depend_on_the_order_of_listings(partition_count):
    """Neither of partitions nor of records or members."""
    for members in memberships():
        for owners, group in worlds(partition_count, members, frozenset()):
            backwards = even_plan(
                group.partition_ids[::-1],
                dict(reversed(group.owner_by_partition.items())),
                sorted(members, reverse=True),
            )

            assert tuple(backwards[p] for p in group.partition_ids) == planned(group), owners


@pytest.mark.parametrize(
    "otherwise", [LoadBalancingStrategy.BALANCED, LoadBalancingStrategy.GREEDY]
)
@pytest.mark.parametrize("partition_count", range(1, 7 if IS_COMPLETE else 4))
def test_members_with_equal_views_write_each_record_once_and_steal_one_at_most(
    partition_count, otherwise
):
    """Also in groups in which only some members hand over."""
    for members in memberships():
        for foreign in subsets(tuple(sorted(members))):
            for _, group in worlds(partition_count, members, foreign):
                check_decisions(group, otherwise)


def check_decisions(group: Group, otherwise: LoadBalancingStrategy) -> None:
    """Let every member decide on the same view."""
    cooperative = group.members - group.foreign
    written: set[str] = set()
    for member in group.members:
        strategy = LoadBalancingStrategy.COOPERATIVE if member in cooperative else otherwise
        moves = decide(group.view(member, cooperative=cooperative), strategy)
        taken = [claim.partition_id for claim in moves.claims]
        taken += [moves.steal.partition_id] if moves.steal else []
        mine = {*taken, *moves.hand_overs}

        assert sum(p in group.owner_by_partition for p in taken) <= 1
        assert len(mine) == len(taken) + len(moves.hand_overs)
        assert not mine & written
        written |= mine

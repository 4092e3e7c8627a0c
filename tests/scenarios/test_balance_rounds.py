"""The rounds that each strategy needs and what it moves, if all members read the same records."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.even import even_plan
from eventproc.models import LoadBalancingStrategy
from tests.unit.eventproc._core.ownership.groups import Group, group_holding, groups
from tests.unit.eventproc._core.ownership.rounds import Rounds

BALANCED = LoadBalancingStrategy.BALANCED
GREEDY = LoadBalancingStrategy.GREEDY
COOPERATIVE = LoadBalancingStrategy.COOPERATIVE
strategies = st.sampled_from(LoadBalancingStrategy)
CLAIM_ROUNDS = 1
"""A hand-over names the new owner, which claims the partition at its next poll."""


def rounds(group: Group, strategy: LoadBalancingStrategy, drain_rounds: int = 0) -> Rounds:
    """Run a group in which all members and leaving owners have one strategy."""
    owner_ids = group.members | group.leaving
    return Rounds(group, dict.fromkeys(owner_ids, strategy), drain_rounds).run()


def due_by_member(group: Group) -> dict[str, list[str]]:
    """The partitions that each member still has to get by the plan."""
    after = even_plan(
        group.partition_ids, group.owner_by_partition, group.members, foreign=group.foreign
    )
    return {
        member: [
            p
            for p, owner in after.items()
            if owner == member and group.owner_by_partition.get(p) != member
        ]
        for member in group.members
    }


def check_moves(before: Group, done: Rounds) -> None:
    """Check that exactly the planned partitions moved, once each."""
    due = {p for due_partitions in due_by_member(before).values() for p in due_partitions}

    assert Counter(done.moved) == Counter(due)
    assert done.group.is_balanced


@given(groups(foreign=False), strategies, st.integers(0, 3))
def test_every_group_becomes_balanced_and_each_partition_moves_once(group, strategy, drain_rounds):
    """``Rounds`` also checks that no two members write one record."""
    done = rounds(group, strategy, drain_rounds)
    check_moves(group, done)

    assert not done.step()


@given(groups(foreign=False), st.integers(0, 3))
def test_balanced_takes_as_many_rounds_as_the_largest_deficit(group, drain_rounds):
    """One claim or steal in each round. Partitions of leaving owners must be released first."""
    wait = drain_rounds + 1 if group.leaving else 0
    most = max(len(due_partitions) for due_partitions in due_by_member(group).values())
    count = rounds(group, BALANCED, drain_rounds).count

    assert most <= count <= most + wait
    if not group.leaving:
        assert count == most


@given(groups(foreign=False), st.integers(0, 3))
def test_greedy_claims_at_once_and_steals_one_by_one(group, drain_rounds):
    """It takes as many rounds as one member has to steal partitions at most."""
    live = {p for p, owner in group.owner_by_partition.items() if owner in group.members}
    due_partitions = due_by_member(group).values()
    steals = max(len(live & set(mine)) for mine in due_partitions)
    claims = any(p not in group.owner_by_partition for mine in due_partitions for p in mine)
    wait = drain_rounds + 2 if group.leaving else 0
    done = rounds(group, GREEDY, drain_rounds)

    assert done.count == max(steals, claims, wait)
    assert done.steal_count == sum(len(live & set(mine)) for mine in due_partitions)


@given(groups(foreign=False), st.integers(0, 3))
def test_cooperative_takes_two_rounds_and_the_drain(group, drain_rounds):
    """One to hand over, and one to claim; nothing is stolen."""
    done = rounds(group, COOPERATIVE, drain_rounds)

    assert done.count <= 1 + drain_rounds + CLAIM_ROUNDS
    assert done.steal_count == 0


@given(st.integers(1, 60), st.integers(1, 8))
def test_a_new_member_steals_its_share_one_by_one(partitions, owners):
    """In P div (N+1) rounds, the number of partitions that must move."""
    holdings = [partitions // owners + (n < partitions % owners) for n in range(owners)]
    group = group_holding(partitions, [*holdings, 0])

    assert rounds(group, BALANCED).count == partitions // (owners + 1)
    assert rounds(group, GREEDY).count == partitions // (owners + 1)
    assert rounds(group, COOPERATIVE).count <= 1 + CLAIM_ROUNDS


@given(st.integers(1, 60), st.integers(1, 8))
def test_balanced_claims_one_by_one_at_a_cold_start(partitions, owners):
    """In P/N rounds, rounded up; the other strategies take one."""
    group = group_holding(partitions, [0] * owners)

    assert rounds(group, BALANCED).count == math.ceil(partitions / owners)
    assert rounds(group, GREEDY).count == rounds(group, COOPERATIVE).count == 1


@pytest.mark.parametrize("strategy", LoadBalancingStrategy)
@pytest.mark.parametrize(
    ("holdings", "after"), [([6, 6, 6, 0], [4, 4, 5, 5]), ([4, 4, 6], [4, 5, 5])]
)
def test_groups_that_other_rules_leave_uneven_become_balanced(holdings, after, strategy):
    """Azure's documented rule stops at 5, 5, 5 and 3; its Python SDK at 4, 4 and 6."""
    done = rounds(group_holding(sum(holdings), holdings), strategy)

    assert sorted(done.group.counts().values()) == after

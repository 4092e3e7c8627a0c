"""How many rounds each strategy takes and what it moves, if all members read the same."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.ownership.plan import plan
from eventproc.models import LoadBalancingStrategy
from tests.unit.eventproc.core.ownership.groups import Group, group_holding, groups
from tests.unit.eventproc.core.ownership.rounds import Rounds

BALANCED = LoadBalancingStrategy.BALANCED
GREEDY = LoadBalancingStrategy.GREEDY
COOPERATIVE = LoadBalancingStrategy.COOPERATIVE
strategies = st.sampled_from(LoadBalancingStrategy)
TAKE_UP_ROUNDS = 1
"""A hand-over names the new owner, which takes the partition up at its next look."""


def rounds(group: Group, strategy: LoadBalancingStrategy, drain_rounds: int = 0) -> Rounds:
    """Run a group whose members and leavers all have one strategy."""
    everybody = group.members | group.leaving
    return Rounds(group, dict.fromkeys(everybody, strategy), drain_rounds).run()


def places(group: Group) -> dict[str, list[str]]:
    """What each member still has to get by the plan."""
    after = plan(
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
    """Whatever moved was planned to, and moved once."""
    due = {p for wanted in places(before).values() for p in wanted}

    assert Counter(done.moved) == Counter(due)
    assert done.group.is_balanced


@given(groups(foreign=False), strategies, st.integers(0, 3))
def test_every_group_becomes_balanced_and_nothing_moves_twice(group, strategy, drain_rounds):
    """No rule stalls; no two write one record (``Rounds`` asserts it); then all is quiet."""
    done = rounds(group, strategy, drain_rounds)
    check_moves(group, done)

    assert not done.step()


@given(groups(foreign=False), st.integers(0, 3))
def test_balanced_takes_as_many_rounds_as_the_largest_deficit(group, drain_rounds):
    """One claim or steal in each; what leavers have comes when they let go of it."""
    wait = drain_rounds + 1 if group.leaving else 0
    most = max(len(wanted) for wanted in places(group).values())
    count = rounds(group, BALANCED, drain_rounds).count

    assert most <= count <= most + wait
    if not group.leaving:
        assert count == most


@given(groups(foreign=False), st.integers(0, 3))
def test_greedy_claims_at_once_and_steals_one_by_one(group, drain_rounds):
    """As many rounds as the largest number of steals of one member."""
    live = {p for p, owner in group.owner_by_partition.items() if owner in group.members}
    wanted = places(group).values()
    steals = max(len(live & set(mine)) for mine in wanted)
    claims = any(p not in group.owner_by_partition for mine in wanted for p in mine)
    wait = drain_rounds + 2 if group.leaving else 0
    done = rounds(group, GREEDY, drain_rounds)

    assert done.count == max(steals, claims, wait)
    assert done.steal_count == sum(len(live & set(mine)) for mine in wanted)


@given(groups(foreign=False), st.integers(0, 3))
def test_cooperative_takes_two_rounds_and_the_drain(group, drain_rounds):
    """One to hand over, one to take up; nothing is stolen."""
    done = rounds(group, COOPERATIVE, drain_rounds)

    assert done.count <= 1 + drain_rounds + TAKE_UP_ROUNDS
    assert done.steal_count == 0


@given(groups(), st.data(), st.integers(0, 3))
def test_a_mixed_group_comes_to_rest_in_the_bound_of_its_slowest(group, data, drain_rounds):
    """Members of every strategy, leavers, and foreign owners that keep what they have."""
    ours = sorted((group.members - group.foreign) | group.leaving)
    chosen = {member: data.draw(strategies) for member in ours}
    group = Group(
        partition_ids=group.partition_ids,
        owner_by_partition=group.owner_by_partition,
        members=group.members,
        foreign=group.members - chosen.keys(),
    )
    lacking = {member: wanted for member, wanted in places(group).items() if member in chosen}
    most = max((len(wanted) for wanted in lacking.values()), default=0)
    done = Rounds(group, chosen, drain_rounds).run()

    assert done.count <= most + 1 + drain_rounds + TAKE_UP_ROUNDS
    assert Counter(done.moved) == Counter(p for wanted in lacking.values() for p in wanted)


@given(st.integers(1, 60), st.integers(1, 8))
def test_one_newcomer_steals_its_share_one_by_one(partitions, owners):
    """BALANCED takes the floor of P/(N+1) rounds, which is how many partitions must move."""
    holdings = [partitions // owners + (n < partitions % owners) for n in range(owners)]
    group = group_holding(partitions, [*holdings, 0])

    assert rounds(group, BALANCED).count == partitions // (owners + 1)
    assert rounds(group, GREEDY).count == partitions // (owners + 1)
    assert rounds(group, COOPERATIVE).count <= 1 + TAKE_UP_ROUNDS


@given(st.integers(1, 60), st.integers(1, 8))
def test_a_cold_start_claims_one_by_one(partitions, owners):
    """BALANCED takes the ceiling of P/N rounds, the others one."""
    group = group_holding(partitions, [0] * owners)

    assert rounds(group, BALANCED).count == math.ceil(partitions / owners)
    assert rounds(group, GREEDY).count == rounds(group, COOPERATIVE).count == 1


@pytest.mark.parametrize("strategy", LoadBalancingStrategy)
@pytest.mark.parametrize(
    ("holdings", "after"), [([6, 6, 6, 0], [4, 4, 5, 5]), ([4, 4, 6], [4, 5, 5])]
)
def test_what_stalls_under_other_rules_does_not_stay(holdings, after, strategy):
    """The literal rule stops at 5, 5, 5, 3; Azure's rule for Python at 4, 4, 6."""
    done = rounds(group_holding(sum(holdings), holdings), strategy)

    assert sorted(done.group.counts().values()) == after

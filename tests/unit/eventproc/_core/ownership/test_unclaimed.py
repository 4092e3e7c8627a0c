"""Partitions that a foreign member does not claim go to members that follow the plan."""

from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.ownership.balance import awaiting_claim, fallback_owners
from eventproc._core.placement.even import even_plan
from eventproc.models import LoadBalancingStrategy
from tests.unit.eventproc._core.ownership.groups import decide, group_holding, groups

COOPERATIVE = LoadBalancingStrategy.COOPERATIVE


def test_a_partition_planned_for_a_foreign_member_is_awaited_until_it_owns_it():
    """Whichever member owns it meanwhile; partitions planned for other members are not awaited."""
    planned = {"0": "azure", "1": "me", "2": "azure", "3": "azure"}

    found = awaiting_claim(planned, {"2": "azure", "3": "me"}, {"azure"})

    assert found == {"0", "3"}


@given(groups(), st.data())
def test_fallback_owners_are_the_members_with_the_fewest_partitions(group, data):
    """All members compute the same ones, and their counts differ by one at most."""
    followers = data.draw(st.frozensets(st.sampled_from(sorted(group.members)), min_size=1))
    live = group.owner_by_partition

    found = fallback_owners(group.partition_ids, live, followers)

    assert found == fallback_owners(tuple(reversed(group.partition_ids)), live, sorted(followers))
    assert {p for p in group.partition_ids if p not in live} <= found.keys()
    assert not any(live.get(p) in group.members - followers for p in found)
    counts = Counter(dict.fromkeys(followers, 0)) + Counter(found.values())
    most = max(counts.values(), default=0)
    assert most - min(counts[follower] for follower in followers) <= 1


def test_a_partition_planned_for_a_member_that_follows_the_plan_is_left_to_it():
    """Handed back to a member that has died, it would make that member look alive for ever."""
    group = group_holding(9, [3, 3, 0])
    free = frozenset(p for p in group.partition_ids if p not in group.owner_by_partition)
    view = group.view("o0", cooperative=group.members, unclaimed=free)

    assert decide(view, COOPERATIVE).claims == ()


@given(st.integers(min_value=4, max_value=12), st.integers(min_value=1, max_value=4))
def test_only_unclaimed_partitions_of_foreign_members_are_claimed(partition_count, held_count):
    """Not those of a member that follows the plan, although it may be dead."""
    group = replace(group_holding(partition_count, [held_count, 0, 0]), foreign=frozenset({"o2"}))
    cooperative = frozenset({"o0", "o1"})
    planned = even_plan(
        group.partition_ids, group.owner_by_partition, group.members, foreign=group.foreign
    )
    free = {p for p in group.partition_ids if p not in group.owner_by_partition}
    planned_for_others = frozenset(p for p in free if planned[p] != "o0")
    view = group.view("o0", cooperative=cooperative, unclaimed=planned_for_others)

    claimed = {claim.partition_id for claim in decide(view, COOPERATIVE).claims}

    assert all(planned[p] != "o1" for p in claimed)


def test_an_unclaimed_partition_is_claimed_by_exactly_one_member():
    """It stays with that member, although that then has more than its quota."""
    group = replace(group_holding(9, [3, 3, 0]), foreign=frozenset({"o2"}))
    cooperative = frozenset({"o0", "o1"})
    planned = even_plan(
        group.partition_ids, group.owner_by_partition, group.members, foreign=group.foreign
    )
    free = frozenset(p for p in group.partition_ids if p not in group.owner_by_partition)
    assert {planned[p] for p in free} == {"o2"}

    claims = {}
    for me in cooperative:
        view = group.view(me, cooperative=cooperative)
        assert decide(view, COOPERATIVE).claims == ()
        late = group.view(me, cooperative=cooperative, unclaimed=free)
        for claim in decide(late, COOPERATIVE).claims:
            assert claim.partition_id not in claims
            claims[claim.partition_id] = me

    assert claims.keys() == free
    after = group.moved(claims)
    for me in cooperative:
        moves = decide(after.view(me, cooperative=cooperative), COOPERATIVE)
        assert (moves.claims, moves.steal, moves.hand_overs) == ((), None, {})


def all_unclaimed(group, me, followers):
    """What one member sees when foreign members had all the time to claim."""
    unclaimed = frozenset(group.partition_ids)
    return group.view(me, cooperative=followers, unclaimed=unclaimed)


def rounds_until_stable(group, followers):
    """Yield the group after each round in which foreign members do nothing."""
    while True:
        yield group
        changes: dict[str, str] = {}
        for me in sorted(followers):
            moves = decide(all_unclaimed(group, me, followers), COOPERATIVE)
            taken = [*moves.claims, *([moves.steal] if moves.steal else [])]
            changes |= {claim.partition_id: me for claim in taken}
            changes |= {p: to for p, to in moves.hand_overs.items() if to is not None}
        if not changes:
            return
        group = group.moved(changes)


@given(groups(has_leaving=False, members_min=2), st.data())
def test_unclaimed_partitions_are_shared_evenly(group, data):
    """Among the members that follow the plan, whoever owned them; then nothing moves."""
    followers = data.draw(st.frozensets(st.sampled_from(sorted(group.members)), min_size=1))

    *_, end = islice(rounds_until_stable(group, followers), len(group.partition_ids) + 3)

    counts = [end.counts()[follower] for follower in followers]
    assert max(counts) - min(counts) <= 1
    assert list(rounds_until_stable(end, followers)) == [end]
    assert set(end.partition_ids) == end.owner_by_partition.keys()


def test_a_partition_whose_record_names_the_processor_is_claimed_despite_the_plan():
    """It is never handed over to the planned foreign member, so no processor would read it."""
    group = replace(group_holding(6, [6, 0]), foreign=frozenset({"o1"}))
    view = group.view("o0", cooperative=frozenset({"o0"}), held=frozenset())

    claims = decide(view, COOPERATIVE).claims

    assert {claim.partition_id for claim in claims} == set(group.partition_ids)


@pytest.mark.parametrize(("me", "foreign"), [("o0", "o2"), ("o2", "o0")])
def test_an_extra_partition_goes_to_a_member_with_a_member_record(me, foreign):
    """It follows the plan, even if it hands nothing over; a foreign member may not claim it."""
    group = group_holding(5, [1, 3, 1])
    present = group.members - frozenset({foreign})
    view = group.view(me, cooperative=frozenset(), present=present)

    assert decide(view, LoadBalancingStrategy.GREEDY).steal is not None

"""What nobody comes for is taken by one who follows the plan."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.balance import decide
from eventproc.core.neglect import free_since_s, heirs
from eventproc.core.plan import plan
from eventproc.models import LoadBalancingStrategy
from tests.unit.core.groups import fleet, groups

COOPERATIVE = LoadBalancingStrategy.COOPERATIVE


def test_a_free_partition_is_noted_until_somebody_has_it():
    """Since the first look that found it so; what is mine to take is no neglect."""
    planned = {"0": "azure", "1": "me", "2": "azure"}

    first = free_since_s({}, planned, {"2": "azure"}, "me", 5.0)
    later = free_since_s(first, planned, {"2": "azure"}, "me", 9.0)

    assert first == later == {"0": 5.0}
    assert free_since_s(later, planned, {"0": "azure"}, "me", 9.0) == {"2": 9.0}


@given(groups(), st.data())
def test_what_is_neglected_goes_to_who_has_least(group, data):
    """Everybody finds the same heir; with what they have already, none has two more than others."""
    followers = data.draw(st.frozensets(st.sampled_from(sorted(group.members)), min_size=1))
    live = group.owner_by_partition

    found = heirs(group.partition_ids, live, followers)

    assert found == heirs(tuple(reversed(group.partition_ids)), live, sorted(followers))
    assert {p for p in group.partition_ids if p not in live} <= found.keys()
    assert not any(live.get(p) in group.members - followers for p in found)
    counts = Counter(dict.fromkeys(followers, 0)) + Counter(found.values())
    most = max(counts.values(), default=0)
    assert most - min(counts[follower] for follower in followers) <= 1


def test_what_one_of_ours_does_not_come_for_is_left_until_it_is_dead():
    """Handed back to it, a dead one would look alive for ever."""
    group = fleet(9, [3, 3, 0])
    free = frozenset(p for p in group.partition_ids if p not in group.owner_by_partition)
    view = replace(group.view("o0", cooperative=group.members), neglected=free)

    assert decide(view, COOPERATIVE).claims == ()


@given(st.integers(min_value=4, max_value=12), st.integers(min_value=1, max_value=4))
def test_only_what_a_foreign_owner_leaves_lying_is_claimed(partition_count, held_count):
    """Beside it lies what one of ours, who may be dead, does not come for."""
    group = replace(fleet(partition_count, [held_count, 0, 0]), foreign=frozenset({"o2"}))
    cooperative = frozenset({"o0", "o1"})
    planned = plan(
        group.partition_ids, group.owner_by_partition, group.members, foreign=group.foreign
    )
    free = {p for p in group.partition_ids if p not in group.owner_by_partition}
    theirs = frozenset(p for p in free if planned[p] != "o0")
    view = replace(group.view("o0", cooperative=cooperative), neglected=theirs)

    claimed = {claim.partition_id for claim in decide(view, COOPERATIVE).claims}

    assert all(planned[p] != "o1" for p in claimed)


def test_what_a_foreign_owner_leaves_lying_is_claimed_by_exactly_one_of_ours():
    """And then it stays with that one, though it has more than its share."""
    group = replace(fleet(9, [3, 3, 0]), foreign=frozenset({"o2"}))
    cooperative = frozenset({"o0", "o1"})
    planned = plan(
        group.partition_ids, group.owner_by_partition, group.members, foreign=group.foreign
    )
    free = frozenset(p for p in group.partition_ids if p not in group.owner_by_partition)
    assert {planned[p] for p in free} == {"o2"}

    claims = {}
    for me in cooperative:
        view = group.view(me, cooperative=cooperative)
        assert decide(view, COOPERATIVE).claims == ()
        for claim in decide(replace(view, neglected=free), COOPERATIVE).claims:
            assert claim.partition_id not in claims
            claims[claim.partition_id] = me

    assert claims.keys() == free
    after = group.moved(claims)
    for me in cooperative:
        moves = decide(after.view(me, cooperative=cooperative), COOPERATIVE)
        assert (moves.claims, moves.steal, moves.hand_overs) == ((), None, {})


@pytest.mark.parametrize(("me", "stranger"), [("o0", "o2"), ("o2", "o0")])
def test_an_extra_place_goes_to_who_comes_for_it(me, stranger):
    """Who wrote presence follows the plan, also if it hands nothing over; a stranger may not."""
    group = fleet(5, [1, 3, 1])
    view = replace(
        group.view(me, cooperative=frozenset()), present=group.members - frozenset({stranger})
    )

    assert decide(view, LoadBalancingStrategy.GREEDY).steal is not None

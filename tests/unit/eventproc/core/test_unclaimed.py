"""What nobody comes for is taken by one who follows the plan."""

from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.balance import decide
from eventproc.core.plan import plan
from eventproc.core.unclaimed import awaiting_claim, fallback_owners
from eventproc.models import LoadBalancingStrategy
from tests.unit.eventproc.core.groups import fleet, groups

COOPERATIVE = LoadBalancingStrategy.COOPERATIVE


def test_what_a_foreign_owner_shall_have_is_awaited_until_it_has_it():
    """Whoever has it meanwhile; what is planned for one of ours is not."""
    planned = {"0": "azure", "1": "me", "2": "azure", "3": "azure"}

    found = awaiting_claim(planned, {"2": "azure", "3": "me"}, {"azure"})

    assert found == {"0", "3"}


@given(groups(), st.data())
def test_what_is_neglected_goes_to_who_has_least(group, data):
    """Everybody finds the same heir; with what they have already, none has two more than others."""
    followers = data.draw(st.frozensets(st.sampled_from(sorted(group.members)), min_size=1))
    live = group.owner_by_partition

    found = fallback_owners(group.partition_ids, live, followers)

    assert found == fallback_owners(tuple(reversed(group.partition_ids)), live, sorted(followers))
    assert {p for p in group.partition_ids if p not in live} <= found.keys()
    assert not any(live.get(p) in group.members - followers for p in found)
    counts = Counter(dict.fromkeys(followers, 0)) + Counter(found.values())
    most = max(counts.values(), default=0)
    assert most - min(counts[follower] for follower in followers) <= 1


def test_what_one_of_ours_does_not_come_for_is_left_until_it_is_dead():
    """Handed back to it, a dead one would look alive for ever."""
    group = fleet(9, [3, 3, 0])
    free = frozenset(p for p in group.partition_ids if p not in group.owner_by_partition)
    view = replace(group.view("o0", cooperative=group.members), unclaimed=free)

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
    view = replace(group.view("o0", cooperative=cooperative), unclaimed=theirs)

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
        for claim in decide(replace(view, unclaimed=free), COOPERATIVE).claims:
            assert claim.partition_id not in claims
            claims[claim.partition_id] = me

    assert claims.keys() == free
    after = group.moved(claims)
    for me in cooperative:
        moves = decide(after.view(me, cooperative=cooperative), COOPERATIVE)
        assert (moves.claims, moves.steal, moves.hand_overs) == ((), None, {})


def all_neglected(group, me, followers):
    """What one of ours knows when foreign owners had all their time."""
    view = group.view(me, cooperative=followers)
    return replace(view, unclaimed=frozenset(group.partition_ids))


def rounds_until_quiet(group, followers):
    """The groups that ours make of one, round by round, where foreign owners never do anything."""
    while True:
        yield group
        changes: dict[str, str] = {}
        for me in sorted(followers):
            moves = decide(all_neglected(group, me, followers), COOPERATIVE)
            taken = [*moves.claims, *([moves.steal] if moves.steal else [])]
            changes |= {claim.partition_id: me for claim in taken}
            changes |= {p: to for p, to in moves.hand_overs.items() if to is not None}
        if not changes:
            return
        group = group.moved(changes)


@given(groups(leavers=False, members_min=2), st.data())
def test_what_foreign_owners_do_not_come_for_is_shared_evenly(group, data):
    """By those who follow the plan, whoever had it; and then nothing moves."""
    followers = data.draw(st.frozensets(st.sampled_from(sorted(group.members)), min_size=1))

    *_, end = islice(rounds_until_quiet(group, followers), len(group.partition_ids) + 3)

    counts = [end.counts()[follower] for follower in followers]
    assert max(counts) - min(counts) <= 1
    assert list(rounds_until_quiet(end, followers)) == [end]
    assert set(end.partition_ids) == end.owner_by_partition.keys()


def test_what_stands_in_my_name_is_taken_up_though_a_foreign_owner_shall_have_it():
    """It is given to nobody who does not follow the plan, so it would lie unread."""
    group = replace(fleet(6, [6, 0]), foreign=frozenset({"o1"}))
    view = group.view("o0", cooperative=frozenset({"o0"}), held=frozenset())

    claims = decide(view, COOPERATIVE).claims

    assert {claim.partition_id for claim in claims} == set(group.partition_ids)


@pytest.mark.parametrize(("me", "stranger"), [("o0", "o2"), ("o2", "o0")])
def test_an_extra_place_goes_to_who_comes_for_it(me, stranger):
    """Who wrote presence follows the plan, also if it hands nothing over; a stranger may not."""
    group = fleet(5, [1, 3, 1])
    view = replace(
        group.view(me, cooperative=frozenset()), present=group.members - frozenset({stranger})
    )

    assert decide(view, LoadBalancingStrategy.GREEDY).steal is not None

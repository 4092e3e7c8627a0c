"""The actions of one processor, for each strategy, and beside foreign members."""

from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.even import even_plan
from eventproc.models import LoadBalancingStrategy
from tests.unit.eventproc._core.ownership.groups import decide, group_holding, groups

BALANCED = LoadBalancingStrategy.BALANCED
GREEDY = LoadBalancingStrategy.GREEDY
COOPERATIVE = LoadBalancingStrategy.COOPERATIVE
RELEASE = LoadBalancingStrategy.RELEASE

strategies = st.sampled_from(LoadBalancingStrategy)


@st.composite
def views(draw):
    """Draw what one member of any group may see; some members hand over, some do not."""
    group = draw(groups(foreign=False))
    me = draw(st.sampled_from(sorted(group.members)))
    owner_ids = sorted(group.members | set(group.owner_by_partition.values()))
    cooperative = draw(st.frozensets(st.sampled_from(owner_ids)))
    overdue = draw(st.frozensets(st.sampled_from(group.partition_ids)))
    expired = draw(st.frozensets(st.sampled_from(group.partition_ids)))
    view = group.view(me, cooperative=cooperative, overdue=overdue)
    live = {
        p: owner_id
        for p, owner_id in view.live_owner_by_partition.items()
        if p not in expired or p in view.held
    }
    released = draw(st.frozensets(st.sampled_from(group.partition_ids))) - view.held
    return replace(
        view,
        live_owner_by_partition=live,
        held=view.held - released,
    )


@given(views(), strategies)
def test_claims_and_hand_overs_carry_out_the_plan(view, strategy):
    """A member claims what the plan gives to it, and lets the rest go to the planned owners.

    With the strategy RELEASE it names no new owner.
    """
    moves = decide(view, strategy)
    taken = [*moves.claims, *([moves.steal] if moves.steal else [])]
    mine = {p for p, o in view.live_owner_by_partition.items() if o == view.owner_id} | view.held

    assert all(claim.owner_id == view.owner_id for claim in taken)
    assert all(moves.owner_by_partition[claim.partition_id] == view.owner_id for claim in taken)
    assert not {claim.partition_id for claim in taken} & view.held
    assert len({claim.partition_id for claim in taken}) == len(taken)
    assert set(moves.hand_overs) <= mine
    for partition_id, target in moves.hand_overs.items():
        planned = moves.owner_by_partition[partition_id]
        assert planned != view.owner_id
        assert target == (None if strategy is RELEASE else planned)


@given(views(), strategies)
def test_every_claim_names_the_etag_that_was_read(view, strategy):
    """Otherwise the second of two writers would overwrite the first."""
    moves = decide(view, strategy)
    for claim in [*moves.claims, *([moves.steal] if moves.steal else [])]:
        record = view.ownership_by_partition.get(claim.partition_id)

        assert claim.expected_etag == (record.etag if record else None)


@given(views(), strategies)
def test_no_claim_is_of_a_partition_with_another_live_owner(view, strategy):
    """Only a steal may name such a partition."""
    for claim in decide(view, strategy).claims:
        owner_id = view.live_owner_by_partition.get(claim.partition_id, view.owner_id)

        assert owner_id == view.owner_id


@given(views(), strategies)
def test_an_owner_that_hands_over_in_time_is_never_stolen_from(view, strategy):
    """A steal is from an owner that does not hand over, or whose ``handoff_timeout`` is over."""
    steal = decide(view, strategy).steal
    if steal is not None:
        owner_id = view.live_owner_by_partition[steal.partition_id]

        assert owner_id != view.owner_id
        assert not view.standing_by_owner[owner_id].lets_go or (
            (steal.partition_id, owner_id) in view.late
        )


@given(views())
def test_balanced_makes_at_most_one_claim_or_steal(view):
    """A partition whose record names the processor already is not counted."""
    moves = decide(view, BALANCED)
    recorded = {
        p for p, record in view.ownership_by_partition.items() if record.owner_id == view.owner_id
    }
    new = [claim for claim in moves.claims if claim.partition_id not in recorded]

    assert len(new) + (moves.steal is not None) <= 1


@given(views(), st.sampled_from([GREEDY, COOPERATIVE]))
def test_greedy_and_cooperative_claim_all_planned_free_partitions(view, strategy):
    """So the partitions of an owner that crashed are claimed in one cycle."""
    moves = decide(view, strategy)
    due = {
        p
        for p, owner_id in moves.owner_by_partition.items()
        if owner_id == view.owner_id and p not in view.held
    }
    free = {p for p in due if view.live_owner_by_partition.get(p) in {None, view.owner_id}}

    assert {claim.partition_id for claim in moves.claims} >= free


@given(views(), st.sampled_from([BALANCED, GREEDY]))
def test_two_strategies_let_nothing_go(view, strategy):
    """With the other two, an owner keeps its partitions until they are stolen."""
    assert decide(view, strategy).hand_overs == {}


@given(views())
def test_a_hand_over_goes_only_to_a_member_that_follows_the_plan(view):
    """An Azure SDK processor would not serve the partition at once."""
    assert set(decide(view, COOPERATIVE).hand_overs.values()) <= view.followers


@given(groups(foreign=False, has_leaving=False), strategies)
def test_is_balanced_only_if_there_is_nothing_to_change(group, strategy):
    """It is true for every member after the plan was carried out; polls slow down then."""
    settled = group.moved(even_plan(group.partition_ids, group.owner_by_partition, group.members))
    cooperative = group.members if strategy.lets_go else frozenset()
    for member in group.members:
        before = decide(group.view(member, cooperative=cooperative), strategy)
        after = decide(settled.view(member, cooperative=cooperative), strategy)

        assert after.is_balanced
        assert (after.claims, after.steal, after.hand_overs) == ((), None, {})
        assert before.is_balanced <= (not (before.claims or before.steal or before.hand_overs))


def test_a_leaving_owner_hands_nothing_over_to_a_foreign_member():
    """It releases the partitions at the end of its stop; the foreign member claims them then."""
    group = replace(group_holding(4, [2, 2]), members=frozenset({"o1"}))

    moves = decide(group.view("o0", cooperative=frozenset({"o0"})), COOPERATIVE)

    assert moves.hand_overs == {"0": None, "1": None}


@given(views(), strategies)
def test_an_unstable_membership_holds_up_steals_and_new_hand_overs(view, strategy):
    """Only partitions whose records name the processor are claimed; hand-overs under way go on."""
    begun = frozenset(sorted(view.held)[::2])
    unstable = replace(view, is_unsure=True, handing_over=begun)
    stable_moves, moves = decide(view, strategy), decide(unstable, strategy)
    taken = {view.live_owner_by_partition.get(claim.partition_id) for claim in moves.claims}
    recorded = {
        p for p, record in view.ownership_by_partition.items() if record.owner_id == view.owner_id
    }

    assert taken <= {view.owner_id, None}
    assert {claim.partition_id for claim in moves.claims} <= recorded
    assert moves.steal is None
    assert moves.hand_overs == {p: to for p, to in stable_moves.hand_overs.items() if p in begun}
    assert moves.is_balanced == stable_moves.is_balanced


@given(groups())
def test_a_member_waits_for_owners_of_its_share_and_for_claims_of_foreign_members(group):
    """Both have ``handoff_timeout``: to let a partition go, or to claim it."""
    me = min(group.members)
    followers = group.members - group.foreign | {me}
    view = group.view(me, cooperative=followers)
    found = decide(view, COOPERATIVE)
    due = {
        (p, group.owner_by_partition[p])
        for p, owner_id in found.owner_by_partition.items()
        if owner_id == me and group.owner_by_partition.get(p, me) != me
    }
    unclaimed = {
        (p, owner_id)
        for p, owner_id in found.owner_by_partition.items()
        if owner_id in view.sharing - view.followers and group.owner_by_partition.get(p) != owner_id
    }

    assert found.waits == due | unclaimed


def test_unclaimed_partitions_have_no_fallback_owner_if_all_members_leave():
    """There is no plan then, and a processor that stops at that moment must not fail."""
    group = group_holding(6, [0])
    leaving = replace(group, members=frozenset())
    view = leaving.view("o0", cooperative=frozenset(), unclaimed=frozenset(group.partition_ids))

    assert decide(view, COOPERATIVE).claims == ()


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

"""The actions of one processor, for each strategy, and beside foreign members."""

from dataclasses import replace
from itertools import islice

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
def test_a_hand_over_goes_only_to_a_member_that_follows_the_plan(view):
    """An Azure SDK processor would not serve the partition at once."""
    assert set(decide(view, COOPERATIVE).hand_overs.values()) <= view.followers


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

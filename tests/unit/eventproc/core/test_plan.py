"""The plan: even, with the fewest moves, the same for everybody, and steady under execution."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.plan import moves_minimum, plan, quotas, rank
from tests.unit.eventproc.core.groups import Group, fleet, groups


def planned(group: Group) -> dict[str, str]:
    """What everybody finds."""
    return plan(group.partition_ids, group.owner_by_partition, group.members, foreign=group.foreign)


def loads(owners) -> list[int]:
    """How many partitions each owner has, most first."""
    owners = list(owners)
    return sorted((owners.count(owner) for owner in set(owners)), reverse=True)


def test_the_worked_example_moves_four_partitions():
    """Three owners of six and a newcomer: 5, 5, 4, 4 after the four moves that must be."""
    group = fleet(18, [6, 6, 6, 0])
    after = planned(group)
    moved = [p for p in group.partition_ids if after[p] != group.owner_by_partition[p]]

    assert loads(after.values()) == [5, 5, 4, 4]
    assert len(moved) == 4
    assert {after[p] for p in moved} == {"o3"}


def test_four_four_six_is_healed():
    """A rule that only helps those below the minimum leaves 14 partitions at 4, 4, 6 for ever."""
    assert loads(planned(fleet(14, [4, 4, 6])).values()) == [5, 5, 4]


def test_nobody_there_means_no_plan():
    """Without members nothing can be planned."""
    assert plan(["0"], {"0": "gone"}, []) == {}
    assert quotas(3, {}) == {}


def test_more_members_than_partitions_leaves_some_without():
    """Nobody gets two while somebody has none."""
    assert loads(planned(fleet(2, [0, 0, 0])).values()) == [1, 1]


def test_a_record_of_no_partition_does_not_hide_one_that_nobody_owns():
    """As many records as partitions, evenly owned, and still something to do.

    Such a record stays behind where a hub was made anew with fewer partitions.
    """
    assert plan(["0", "1"], {"0": "a", "7": "b"}, ["a", "b"]) == {"0": "a", "1": "b"}


@given(groups())
def test_every_partition_has_a_member_and_all_have_the_same_or_one_less(group):
    """Balance, and nothing for those who leave."""
    after = planned(group)
    counts = [list(after.values()).count(member) for member in group.members]

    assert set(after) == set(group.partition_ids)
    assert set(after.values()) <= group.members
    assert max(counts) - min(counts) <= 1


@given(groups())
def test_no_plan_could_move_less(group):
    """Of what members hold, exactly the surplus over the best quotas moves."""
    after = planned(group)
    moved = [
        p
        for p, owner_id in group.owner_by_partition.items()
        if owner_id in group.members and after[p] != owner_id
    ]

    assert len(moved) == moves_minimum(len(group.partition_ids), group.counts(), group.foreign)


@given(groups(foreign=False, leavers=False))
def test_the_minimum_is_the_theoretical_one(group):
    """Everybody keeps the minimum; those above it keep one more as long as there are extras."""
    minimum, extras = divmod(len(group.partition_ids), len(group.members))
    counts = group.counts().values()
    kept = sum(min(count, minimum) for count in counts)
    kept += min(extras, sum(count > minimum for count in counts))

    assert moves_minimum(len(group.partition_ids), group.counts()) == sum(counts) - kept


@given(groups(), st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_any_order(group, random: Random):
    """Listings come in any order, on every processor in another."""
    ids, owned = list(group.partition_ids), list(group.owner_by_partition.items())
    members = sorted(group.members)
    for items in (ids, owned, members):
        random.shuffle(items)

    assert plan(ids, dict(owned), members, foreign=group.foreign) == planned(group)


@given(groups(), st.data())
def test_carrying_out_any_part_leaves_the_rest_of_the_plan(group, data):
    """Whatever was done first, in whatever order, nobody changes its mind."""
    after = planned(group)
    part = data.draw(st.sets(st.sampled_from(group.partition_ids)))

    assert planned(group.moved({p: after[p] for p in part})) == after


@pytest.mark.parametrize("holdings", [[6, 4, 0], [4, 6, 0], [9, 5, 5, 0], [5, 5, 9, 0]])
def test_extra_places_do_not_follow_exact_counts(holdings):
    """Else two owners swap their quotas as soon as one of them has given something away."""
    whole = fleet(sum(holdings), holdings)
    after = planned(whole)
    for order in (whole.partition_ids, whole.partition_ids[::-1]):
        group = whole
        for p in order:
            group = group.moved({p: after[p]})

            assert planned(group) == after


@given(groups())
def test_a_balanced_group_stays_as_it_is(group):
    """What is planned once is planned again."""
    settled = group.moved(planned(group))

    assert planned(settled) == settled.owner_by_partition
    assert moves_minimum(len(group.partition_ids), settled.counts(), group.foreign) == 0


@given(groups(members_min=2), st.data())
def test_surplus_leaves_those_that_hand_over_before_it_leaves_foreign_ones(group, data):
    """A foreign owner above the minimum loses its extra place only if all that have one are."""
    sizes = quotas(len(group.partition_ids), group.counts(), group.foreign)
    minimum = len(group.partition_ids) // len(group.members)
    above = {m for m, count in group.counts().items() if count > minimum}
    extra = {m for m, size in sizes.items() if size > minimum}

    if (above & group.foreign) - extra:
        assert not (above - group.foreign) & extra


@given(groups(members_min=2))
def test_an_extra_place_goes_to_a_foreign_member_last(group):
    """Nobody can make it take one."""
    sizes = quotas(len(group.partition_ids), group.counts(), group.foreign)
    minimum = len(group.partition_ids) // len(group.members)
    below = {m for m, count in group.counts().items() if count <= minimum}
    extra = {m for m, size in sizes.items() if size > minimum}

    if below & group.foreign & extra:
        assert below - group.foreign <= extra


def test_the_rank_of_a_name_is_the_same_everywhere():
    """It is part of the protocol: processors of all versions must find the same plan."""
    assert rank("0") == 9523843951405948789

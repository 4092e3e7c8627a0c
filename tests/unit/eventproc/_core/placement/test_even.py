"""``Even``: balanced, fewest moves, the same on every processor, stable while carried out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.even import even_plan, even_quotas
from tests.unit.eventproc._core.ownership.groups import Group, group_holding, groups


def planned(group: Group) -> dict[str, str]:
    """The plan for this group."""
    return even_plan(
        group.partition_ids, group.owner_by_partition, group.members, foreign=group.foreign
    )


def loads(owners) -> list[int]:
    """The number of partitions of each owner, largest first."""
    owners = list(owners)
    return sorted((owners.count(owner) for owner in set(owners)), reverse=True)


def test_the_worked_example_moves_four_partitions():
    """Owners of 6, 6 and 6 and a new member get 5, 5, 4 and 4: four moves to the new member."""
    group = group_holding(18, [6, 6, 6, 0])
    after = planned(group)
    moved = [p for p in group.partition_ids if after[p] != group.owner_by_partition[p]]

    assert loads(after.values()) == [5, 5, 4, 4]
    assert len(moved) == 4
    assert {after[p] for p in moved} == {"o3"}


def test_what_moves_is_decided_by_rank():
    """It is the same on every machine, and in every version: processors of several may meet."""
    group = group_holding(18, [6, 6, 6, 0])

    after = planned(group)
    moved = [p for p in group.partition_ids if after[p] == "o3"]

    assert moved == ["1", "7", "10", "15"]


def test_a_surplus_moves_although_no_member_is_below_the_minimum():
    """14 partitions held as 4, 4 and 6 become 5, 5 and 4."""
    assert loads(planned(group_holding(14, [4, 4, 6])).values()) == [5, 5, 4]


def test_without_members_the_plan_is_empty():
    """Even if a partition has an owner, which is leaving."""
    assert even_plan(["0"], {"0": "gone"}, []) == {}
    assert even_quotas(3, {}) == {}


def test_with_more_members_than_partitions_no_member_gets_two():
    """Two of the three members get one partition each."""
    assert loads(planned(group_holding(2, [0, 0, 0])).values()) == [1, 1]


def test_a_record_of_a_partition_that_does_not_exist_is_ignored():
    """Partition 1 is planned although there are as many records as partitions.

    Such a record stays behind when a hub is created again with fewer partitions.
    """
    assert even_plan(["0", "1"], {"0": "a", "7": "b"}, ["a", "b"]) == {"0": "a", "1": "b"}


@pytest.mark.parametrize("holdings", [[6, 4, 0], [4, 6, 0], [9, 5, 5, 0], [5, 5, 9, 0]])
def test_moves_do_not_change_which_members_get_an_extra_partition(holdings):
    """If exact counts decided, two owners would swap quotas after the first hand-over."""
    whole = group_holding(sum(holdings), holdings)
    after = planned(whole)
    for order in (whole.partition_ids, whole.partition_ids[::-1]):
        group = whole
        for p in order:
            group = group.moved({p: after[p]})

            assert planned(group) == after


@given(groups(members_min=2), st.data())
def test_foreign_owners_lose_their_extra_partitions_last(group, data):
    """If one above the minimum loses its extra partition, no other owner above it keeps one."""
    sizes = even_quotas(len(group.partition_ids), group.counts(), group.foreign)
    minimum = len(group.partition_ids) // len(group.members)
    above = {m for m, count in group.counts().items() if count > minimum}
    extra = {m for m, size in sizes.items() if size > minimum}

    if (above & group.foreign) - extra:
        assert not (above - group.foreign) & extra


@given(groups(members_min=2))
def test_foreign_members_get_extra_partitions_last(group):
    """A foreign member cannot be made to claim one."""
    sizes = even_quotas(len(group.partition_ids), group.counts(), group.foreign)
    minimum = len(group.partition_ids) // len(group.members)
    below = {m for m, count in group.counts().items() if count <= minimum}
    extra = {m for m, size in sizes.items() if size > minimum}

    if below & group.foreign & extra:
        assert below - group.foreign <= extra

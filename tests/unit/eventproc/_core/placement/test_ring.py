"""``Ring``: a hash ring with a bound, or equal arcs (``literal``)."""

from collections import Counter
from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.plan import plan
from eventproc._core.placement.ring import Ring
from eventproc.errors import ConfigurationError
from tests.unit.eventproc._core.placement.states import counts, shares, state

RING_OF_FOUR = {
    "pod-0": ["0", "1", "9"],
    "pod-1": ["3", "5", "7"],
    "pod-2": ["2", "4", "6"],
    "pod-3": ["8"],
}
LOOSE_RING_OF_FOUR = {
    "pod-0": ["0", "9"],
    "pod-1": ["1", "3", "5", "7"],
    "pod-2": ["2", "4", "6"],
    "pod-3": ["8"],
}


def group_of(resources: int, members: int, owned: str = ""):
    """A group of members ``pod-N``."""
    return state(resources, owned, **{f"pod-{n}": MemberFacts() for n in range(members)})


def test_of_ten_on_ten_each_member_has_one():
    """Equal arcs leave five of these ten members without a resource."""
    assert set(counts(group_of(10, 10), Ring()).values()) == {1}
    assert sorted(counts(group_of(10, 10), Ring(literal=True)).values()) == [0] * 5 + [
        *(1, 2, 2, 2, 3),
    ]


def test_the_plan_of_a_ring_is_fixed():
    """It is part of the protocol: processors of all versions must compute the same plan."""
    assert shares(group_of(10, 4), Ring()) == RING_OF_FOUR
    assert shares(group_of(10, 4), Ring(bound=2.0)) == LOOSE_RING_OF_FOUR


def test_literal_splits_the_circle_into_equal_arcs():
    """Ranks of 0 to 9 in quarters of the circle: 2, 3, 0, 2, 1, 2, 0, 3, 2, 2."""
    assert shares(group_of(10, 4), Ring(literal=True)) == {
        "pod-0": ["2", "6"],
        "pod-1": ["4"],
        "pod-2": ["0", "3", "5", "8", "9"],
        "pod-3": ["1", "7"],
    }


def test_literal_orders_the_other_members_from_the_arc_on():
    """Resource 0 is in the third of four arcs."""
    order = Ring(literal=True).order(group_of(1, 4))

    assert list(order("0")) == ["pod-2", "pod-3", "pod-0", "pod-1"]


@given(st.integers(1, 60), st.integers(1, 12), st.sampled_from([1.0, 1.25, 2.0]))
def test_no_member_has_more_than_the_bound(resources, members, bound):
    """And each resource has an owner."""
    found = counts(group_of(resources, members), Ring(bound=bound))

    assert max(found.values()) <= ceil(bound * resources / members)
    assert sum(found.values()) == resources


@given(st.integers(1, 40), st.integers(2, 9), st.integers(0, 8), st.booleans())
def test_the_plan_does_not_depend_on_owners(resources, members, owner, literal):
    """So a resource returns to its member when that one does, and no member can wait for it."""
    everything = ",".join(str(number) for number in range(resources))
    placement = Ring(literal=literal)

    assert plan(group_of(resources, members, f"pod-{owner}:{everything}"), placement) == plan(
        group_of(resources, members), placement
    )
    assert not placement.admits_standby


@given(st.integers(1, 40), st.integers(2, 9))
def test_without_a_tight_bound_only_the_resources_of_a_member_that_ends_move(resources, members):
    """With a bound that no member reaches, it is a plain hash ring."""
    loose = Ring(bound=float(members))
    before = plan(group_of(resources, members), loose)
    after = plan(group_of(resources, members - 1), loose)
    last = f"pod-{members - 1}"

    assert {r for r in before if before[r] != after[r]} == {r for r in before if before[r] == last}


def test_a_higher_bound_moves_fewer_resources_and_balances_them_worse():
    """One of 32 members ends, in three groups; equal arcs move the most."""
    rings = [Ring(literal=True), Ring(), Ring(bound=1.25), Ring(bound=2.0)]
    moves, most = dict.fromkeys(rings, 0), dict.fromkeys(rings, 0)
    for ring in rings:
        for draw in range(3):
            names = [f"host-{draw}-{number}" for number in range(32)]
            before = plan(state(256, **dict.fromkeys(names, MemberFacts())), ring)
            after = plan(state(256, **dict.fromkeys(names[1:], MemberFacts())), ring)
            moves[ring] += sum(before[r] != after[r] for r in before)
            most[ring] += max(Counter(before.values()).values())

    assert sorted(rings, key=moves.__getitem__, reverse=True) == rings
    assert sorted(rings[1:], key=most.__getitem__) == rings[1:]
    assert moves[Ring(bound=2.0)] < 3 * 256 / 32 * 1.5


def test_a_member_has_many_points():
    """With one point for each of two members, one of them would have most of the circle."""
    resources = 1000
    found = counts(group_of(resources, 2), Ring(bound=2.0))

    assert min(found.values()) > 0.4 * resources


def backups(seen, placement) -> dict[str, tuple[str, ...]]:
    """The backups of each resource."""
    backups_of = placement.backups_of(seen, plan(seen, placement))
    return {r: () if backups_of is None else backups_of(r) for r in seen.resources}


@given(st.integers(1, 40), st.integers(2, 9))
def test_the_next_owner_of_a_resource_is_its_first_backup(resources, members):
    """Each member ends in turn; with a bound that none reaches, the next owner is always that."""
    loose = Ring(bound=float(members), backups=1)
    group = group_of(resources, members)
    first = {resource: names[0] for resource, names in backups(group, loose).items()}
    owners = plan(group, loose)
    for ended in group.members:
        left = replace(group, members={n: f for n, f in group.members.items() if n != ended})
        planned = plan(left, loose)

        assert all(planned[r] == first[r] for r in owners if owners[r] == ended)


@given(
    st.integers(0, 40),
    st.integers(0, 9),
    st.integers(0, 12),
    st.booleans(),
    st.sampled_from([1, 2]),
)
def test_backups_are_other_members_than_the_owner(resources, members, count, literal, bound):
    """As many as are wanted, or all others."""
    ring = Ring(bound=bound, backups=count, literal=literal)
    group = group_of(resources, members)
    owners = plan(group, ring)
    for resource, names in backups(group, ring).items():
        assert len(names) == len(set(names)) == max(0, min(count, members - 1))
        assert set(names) <= group.members.keys() - {owners.get(resource)}


def test_backups_follow_the_owner_on_the_ring():
    """Members that come before the owner in the order are full, so they come last."""
    group = group_of(10, 4)
    ring = Ring(backups=3)
    order, owners = ring.order(group), plan(group, ring)
    found = backups(group, ring)
    passed = [r for r in group.resources if next(iter(order(r))) != owners[r]]

    assert passed
    for resource in group.resources:
        names = [*order(resource)]
        at = names.index(owners[resource])

        assert found[resource] == (*names[at + 1 :], *names[:at])


def test_backups_change_no_plan():
    """Members with another number of them have the same plan while the group changes."""
    assert Ring().backups_of(group_of(10, 4), {}) is None
    assert shares(group_of(10, 4), Ring(backups=2)) == RING_OF_FOUR


@pytest.mark.parametrize("count", [-1, 0.5, "1", True])
def test_a_number_of_backups_that_is_none_is_refused(count):
    """The message says what is possible."""
    with pytest.raises(ConfigurationError, match=r"backups .* a whole number, 0 or more"):
        Ring(backups=count)


def test_without_members_there_are_no_quotas():
    """The plan asks for none; a quota of nobody would divide by zero."""
    assert Ring().quotas(state(3)) == {}


@pytest.mark.parametrize("bound", [0.99, 0, -1.0, float("nan"), "1", True])
def test_a_bound_below_one_is_refused(bound):
    """Some resources would have no planned owner."""
    with pytest.raises(ConfigurationError, match="bound"):
        Ring(bound=bound)

"""The plan: rules 2 and 4 of its module, and backups. The contract of placements has the others."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.clockwise import Circle, Clockwise
from eventproc._core.placement.even import Even
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import GroupState, MemberFacts, Placement
from eventproc._core.placement.plan import backed_up_by, plan
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted
from eventproc.testing._placement_contract.drawing import with_owners
from tests.unit.eventproc._core.placement.states import counts, shares, state, states

ONE = MemberFacts()


@dataclass(frozen=True)
class Capacities(Placement):
    """A user's placement: each member takes up to its capacity, whatever else there is."""

    def quotas(self, state: GroupState) -> dict[str, int | None]:
        """Return the capacities."""
        return {name: facts.capacity for name, facts in state.members.items()}

    def order(self, state: GroupState) -> Clockwise:
        """Return the order of ``Even``."""
        return Clockwise(Circle.of(state.members))


@dataclass(frozen=True)
class FixedCapacities(Capacities):
    """The same, and its plan does not regard owners."""

    is_sticky = False


@dataclass(frozen=True)
class FirstByName(Capacities):
    """The same, but members get resources in the order of their names."""

    def order(self, state: GroupState):
        """Return the same order for each resource."""
        names = sorted(state.members)
        return lambda _: names


@dataclass(frozen=True)
class OnlyFirst(Capacities):
    """The same, but only the member whose name sorts first may have resources."""

    def order(self, state: GroupState):
        """Return that member for each resource."""
        return lambda _: [min(state.members)]


@dataclass(frozen=True)
class Newest(Placement):
    """A user's placement: only members of the newest deployment, by name."""

    def order(self, state: GroupState):
        """Return the same members for each resource, as a list."""
        newest = max(facts.deployment_id for facts in state.members.values())
        names = sorted(m for m, f in state.members.items() if f.deployment_id == newest)
        return lambda resource: names[int(resource) % len(names) :] + names


STICKY = (Even(), Weighted(), Capacities(), Newest())


@pytest.mark.parametrize("placement", STICKY, ids=lambda p: p.name)
@given(data=st.data())
def test_a_sticky_placement_takes_only_the_surplus(placement, data):
    """Rule 2: each owner keeps what it may have, up to its quota."""
    group = data.draw(states(placement))
    planned, quotas, order = plan(group, placement), placement.quotas(group), placement.order(group)
    for member, quota in quotas.items():
        held = [r for r, owner in group.owner_by_resource.items() if owner == member]
        may_keep = [r for r in held if member in order(r)]
        kept = [r for r in held if planned.get(r) == member]

        assert len(kept) == min(len(may_keep), len(held) if quota is None else quota)


def test_resources_without_an_owner_get_too_few_places_first():
    """Rule 4: b takes the free resource, not the surplus of a, which a keeps."""
    group = state(
        4,
        "a:0,1,2",
        a=MemberFacts(capacity=1),
        b=MemberFacts(capacity=1),
        c=MemberFacts(capacity=0),
    )
    planned = plan(group, Capacities())

    assert planned["3"] == "b"
    assert sorted(planned.values()) == ["a", "b"]


def test_an_owner_keeps_the_resources_of_the_lowest_rank():
    """In whatever order they are named: each member computes the same plan."""
    group = state(3, "a:0,1,2", a=MemberFacts(capacity=1), b=MemberFacts(capacity=2))
    backwards = replace(group, resources=group.resources[::-1])

    assert plan(group, Capacities()) == plan(backwards, Capacities())


def test_a_resource_that_was_released_is_dealt_as_before():
    """Although it is free now, and places are too few: b and c have one each for 2 and 3."""
    one, none = MemberFacts(capacity=1), MemberFacts(capacity=0)
    group = state(4, "a:0,1,2", a=none, b=one, c=one)
    released = state(4, "a:0,1", a=none, b=one, c=one)

    assert plan(group, Capacities()) == plan(released, Capacities()) == {"2": "c", "3": "b"}


def test_with_just_enough_places_resources_are_dealt_by_rank():
    """With one place fewer they would not be: what is free would come first."""
    group = state(4, "a:0,1,2", a=MemberFacts(capacity=1), b=MemberFacts(capacity=3))

    assert counts(group, Capacities()) == {"a": 1, "b": 3}


def test_with_a_member_without_a_limit_places_are_never_too_few():
    """So it does not matter for the order which of the resources have an owner."""
    members = {"a": MemberFacts(capacity=0), "b": MemberFacts(capacity=1), "c": ONE}
    plans = [
        plan(state(8, owned, **members), FirstByName())
        for owned in ("", "a:0,1,2,3", "a:4,5,6,7", "a:0,2,4,6")
    ]

    assert sorted(plans[0].values()) == ["b", *"ccccccc"]
    assert all(each == plans[0] for each in plans)


def test_the_resources_of_an_owner_that_leaves_count_as_free():
    """Rule 4: they come before the surplus of a member that stays."""
    group = state(4, "a:0,1,2 gone:3", a=MemberFacts(capacity=1), b=MemberFacts(capacity=1))

    assert shares(group, Capacities())["b"] == ["3"]


def test_capacities_without_memory_give_places_by_rank_alone():
    """A free resource does not take the place of one that its owner has in the plan."""
    group = state(3, "a:0 b:1", a=MemberFacts(capacity=1), b=MemberFacts(capacity=1))
    free = with_owners(group, {})

    assert plan(group, FixedCapacities()) == plan(free, FixedCapacities())
    assert set(plan(group, FixedCapacities())) == {"2", "0"}


def test_the_resources_of_a_leaving_owner_are_not_planned_for_it_if_all_others_are_full():
    """The members own just what their quotas say, but not all that there is."""
    group = state(2, "a:0 gone:1", a=MemberFacts(capacity=1))

    assert plan(group, Capacities()) == {"0": "a"}


def test_an_owner_that_the_order_leaves_out_loses_its_resources_although_counts_are_as_planned():
    """Here each member owns as many as its quota says."""
    group = state(2, "a:0 b:1", a=MemberFacts(capacity=1), b=MemberFacts(capacity=1))

    assert plan(group, OnlyFirst()) == {"0": "a"}


def test_an_owner_that_the_order_leaves_out_loses_its_resources():
    """Although its quota would allow them."""
    old, new = MemberFacts(deployment_id="1"), MemberFacts(deployment_id="2")

    assert shares(state(2, "a:0,1", a=old, b=new), Newest()) == {"a": [], "b": ["0", "1"]}


@pytest.mark.parametrize("is_circle", [True, False])
def test_names_in_an_order_that_are_no_members_are_passed_over(is_circle):
    """A placement may know of processors that are not there."""

    class AllMembers(Capacities):
        def order(self, state: GroupState):
            names = ["a", "b", "not-there"]
            return Clockwise(Circle.of(names)) if is_circle else lambda _: reversed(names)

    group = state(9, a=ONE, b=ONE)

    assert sum(counts(group, AllMembers()).values()) == 9


def test_without_members_nothing_is_planned():
    """Whatever the placement."""
    for placement in (*STICKY, Ordinal(), Ring()):
        assert plan(state(2, "gone:0"), placement) == {}


def test_a_record_of_a_resource_that_does_not_exist_is_not_planned():
    """Also if counts and quotas agree."""
    assert plan(state(1, "a:0,7", a=ONE), Even()) == {"0": "a"}
    assert plan(state(2, "a:0,7", a=ONE), Even()) == {"0": "a", "1": "a"}


def state_of(member_count, resource_count):
    """A group whose resources are free."""
    return GroupState(
        resources=tuple(f"r{number}" for number in range(resource_count)),
        owner_by_resource={},
        members={f"m{number}": MemberFacts() for number in range(member_count)},
    )


@given(st.integers(1, 6), st.integers(0, 20), st.integers(0, 3))
def test_every_resource_has_its_backups(member_count, resource_count, backup_count):
    """Or all other members, if they are fewer."""
    state, ring = state_of(member_count, resource_count), Ring(backups=backup_count)
    planned = plan(state, ring)
    found = {me: backed_up_by(me, planned, state, ring) for me in state.members}

    for resource in state.resources:
        backups = {me for me, names in found.items() if resource in names}
        assert len(backups) == min(backup_count, member_count - 1)
        assert planned[resource] not in backups


@given(st.integers(2, 6), st.integers(1, 20))
def test_without_a_bound_the_backup_is_the_next_owner(member_count, resource_count):
    """The ring gives a resource of a member that leaves to the next one."""
    state, ring = state_of(member_count, resource_count), Ring(backups=1, bound=1000.0)
    planned = plan(state, ring)
    gone = planned["r0"]
    left = {name: facts for name, facts in state.members.items() if name != gone}
    after = plan(GroupState(resources=state.resources, owner_by_resource={}, members=left), ring)

    for resource in state.resources:
        if planned[resource] == gone:
            assert resource in backed_up_by(after[resource], planned, state, ring)


def test_other_placements_have_no_backups():
    """And a processor that is no member is a backup of nothing."""
    state, ring = state_of(3, 5), Ring(backups=1)
    planned = plan(state, Even())

    assert backed_up_by("m0", planned, state, Even()) == frozenset()
    assert backed_up_by("stranger", planned, state, ring) == frozenset()

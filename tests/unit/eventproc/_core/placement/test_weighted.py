"""``Weighted``: shares by weight, up to capacities, with the fewest moves."""

from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.even import even_quotas
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.weighted import Weighted
from tests.unit.eventproc._core.placement.states import counts, shares, state, states

TWO, ONE = MemberFacts(weight=2), MemberFacts()


def facts(*, weight: float = 1.0, capacity: int | None = None) -> MemberFacts:
    """What a member says of itself."""
    return MemberFacts(weight=weight, capacity=capacity)


def test_resources_are_shared_by_weight():
    """The worked example: 10 resources on weights 2, 1 and 1 are 5, 3 and 2."""
    found = counts(state(10, a=TWO, b=ONE, c=ONE), Weighted())

    assert found["a"] == 5
    assert sorted(found.values()) == [2, 3, 5]


def test_what_a_capacity_leaves_over_is_shared_by_the_others():
    """The worked example: the first takes 4, and the others share 6."""
    group = state(10, a=facts(weight=2, capacity=4), b=ONE, c=ONE)

    assert counts(group, Weighted()) == {"a": 4, "b": 3, "c": 3}


def test_a_capacity_may_limit_a_second_member_when_it_has_limited_a_first():
    """Of 12, b alone would get 4 of its 5; but a takes only 1, so b's share exceeds 5."""
    group = state(12, a=facts(capacity=1), b=facts(capacity=5), c=ONE)

    assert counts(group, Weighted()) == {"a": 1, "b": 5, "c": 6}


def test_the_extra_places_go_to_the_largest_fractions():
    """Exact shares of 10 are 5.71, 2.86 and 1.43: two extra places go to the first two."""
    group = state(10, a=facts(weight=4), b=facts(weight=2), c=ONE)

    assert counts(group, Weighted()) == {"a": 6, "b": 3, "c": 1}


def test_an_owner_of_an_extra_resource_keeps_it_though_its_fraction_is_smaller():
    """So the quotas stay while resources move: c owns 2, and its exact share is 1.43."""
    group = state(10, "c:0,1", a=facts(weight=4), b=facts(weight=2), c=ONE)

    assert counts(group, Weighted()) == {"a": 5, "b": 3, "c": 2}


def test_capacities_too_small_for_all_resources_leave_some_without_an_owner():
    """Nothing that has an owner is taken from it for one that has none; see also rule 4."""
    group = state(6, "a:0,1", a=facts(capacity=2), b=facts(capacity=1))
    found = shares(group, Weighted())

    assert found["a"] == ["0", "1"]
    assert len(found["b"]) == 1


@given(states(Weighted()))
def test_no_member_gets_more_than_its_capacity(group):
    """All resources have a planned owner if the capacities allow it."""
    found = counts(group, Weighted())
    capacities = {name: facts.capacity for name, facts in group.members.items()}
    known = [capacity for capacity in capacities.values() if capacity is not None]
    possible = len(group.resources) if None in capacities.values() else sum(known)

    assert all(c is None or found[name] <= c for name, c in capacities.items())
    assert sum(found.values()) == min(len(group.resources), possible)


@given(states(Weighted()))
def test_a_member_below_its_capacity_gets_its_exact_share_or_one_more_than_its_integer(group):
    """Two members below their capacities have shares in proportion to their weights."""
    found = counts(group, Weighted())
    per_weight = [
        (found[name] - 1, found[name] + 1, facts.weight)
        for name, facts in group.members.items()
        if facts.capacity is None or found[name] < facts.capacity
    ]

    for least, _, weight in per_weight:
        for _, most, other in per_weight:
            assert least / weight < most / other


@given(st.integers(1, 40), st.integers(1, 9))
def test_equal_weights_give_the_quotas_of_even(resource_count, member_count):
    """Without capacities, and while no member owns anything."""
    names = [f"m{number}" for number in range(member_count)]
    group = state(resource_count, **dict.fromkeys(names, ONE))

    assert Weighted().quotas(group) == even_quotas(resource_count, dict.fromkeys(names, 0))


def test_a_member_whose_share_is_just_its_capacity_gets_no_extra_place():
    """Although it holds one more, so that it would be the first to get one."""
    group = state(
        10,
        "a:0,1,2",
        a=MemberFacts(weight=1, capacity=2),
        b=MemberFacts(weight=1.25),
        c=MemberFacts(weight=2.75),
    )

    assert Weighted().quotas(group) == {"a": 2, "b": 2, "c": 6}

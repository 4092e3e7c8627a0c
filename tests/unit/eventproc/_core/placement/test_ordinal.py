"""``Ordinal``: blocks of resources for numbered members."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.plan import plan
from eventproc.errors import ConfigurationError
from tests.unit.eventproc._core.placement.states import counts, numbered, shares, state


def blocks(placement: Ordinal, resources: int, *ordinals: int) -> str:
    """The block of each member, in the order of the ordinals."""
    found = shares(numbered(resources, *ordinals), placement)
    return " ".join(",".join(found[f"p-{n}"]) or "-" for n in ordinals)


SITUATIONS = {
    "ten licence keys": (Ordinal(), 10, (0, 1, 2, 3), "0,1,2 3,4,5 6,7 8,9"),
    "ten, literal": (Ordinal(literal=True), 10, (0, 1, 2, 3), "0,1 2,3 4,5 6,7,8,9"),
    "no remainder": (Ordinal(), 4, (0, 1), "0,1 2,3"),
    "no remainder, literal": (Ordinal(literal=True), 4, (0, 1), "0,1 2,3"),
    "more members than resources": (Ordinal(), 2, (0, 1, 2), "0 1 -"),
    "more members, literal": (Ordinal(literal=True), 2, (0, 1, 2), "0 1 -"),
    "one is away": (Ordinal(), 10, (0, 1, 3), "0,1,2 3,4,5,7 6,8,9"),
    "it has returned": (Ordinal(), 10, (0, 1, 2, 3), "0,1,2 3,4,5 6,7 8,9"),
    "the last is away": (Ordinal(), 10, (0, 1, 2), "0,1,2,3 4,5,6 7,8,9"),
    "the last is away, replicas": (Ordinal(replicas=4), 10, (0, 1, 2), "0,1,2 3,4,5 6,7,8,9"),
    "the first is away": (Ordinal(replicas=4), 10, (1, 2, 3), "0,1,2,3,4,5 6,7 8,9"),
    "only the last is there": (Ordinal(), 3, (5,), "0,1,2"),
    "scaled down, one still there": (Ordinal(replicas=2), 4, (0, 1, 2), "0,1 2,3 -"),
}


@pytest.mark.parametrize(
    ("placement", "resources", "ordinals", "found"), SITUATIONS.values(), ids=SITUATIONS
)
def test_each_ordinal_has_a_block(placement, resources, ordinals, found):
    """And the block of an ordinal that is not there is served by its neighbours."""
    assert blocks(placement, resources, *ordinals) == found


def test_neighbours_follow_by_distance_on_alternating_sides():
    """Resources 6, 7 and 8 are of ordinal 2; the even ones go up first, the odd one down."""
    order = Ordinal(replicas=5).order(numbered(15, 0, 1, 2, 3, 4))

    assert list(order("6")) == list(order("8")) == ["p-2", "p-3", "p-1", "p-4", "p-0"]
    assert list(order("7")) == ["p-2", "p-1", "p-3", "p-0", "p-4"]


def test_members_with_one_ordinal_follow_each_other_by_name():
    """A pod that was replaced may be listed for a while beside its successor."""
    group = state(2, b=MemberFacts(ordinal=0), a=MemberFacts(ordinal=0), c=MemberFacts(ordinal=1))

    assert list(Ordinal().order(group)("0")) == ["a", "b", "c"]


def test_a_member_without_an_ordinal_gets_nothing():
    """Such a member cannot start; its record may be of a version that did not write ordinals."""
    assert counts(state(2, a=MemberFacts(ordinal=0), b=MemberFacts()), Ordinal()) == {
        "a": 2,
        "b": 0,
    }


def test_without_any_ordinal_nothing_is_planned():
    """Members of another placement, in the moment in which the group changes to this one."""
    assert shares(state(2, a=MemberFacts(), b=MemberFacts()), Ordinal()) == {"a": [], "b": []}


@given(st.integers(1, 60), st.integers(1, 12), st.integers(0, 11), st.booleans())
def test_the_plan_does_not_depend_on_owners(resources, ordinals, owner, literal):
    """So a block returns to its ordinal when that one does, and no process can wait for it."""
    placement = Ordinal(literal=literal)
    group = numbered(resources, *range(ordinals))
    owned = replace(group, owner_by_resource=dict.fromkeys(group.resources, f"p-{owner}"))

    assert plan(owned, placement) == plan(group, placement)
    assert not placement.admits_standby


@given(st.integers(1, 60), st.integers(1, 12))
def test_blocks_differ_by_one_at_most(resources, replicas):
    """They follow each other in the order of the resources."""
    group = numbered(resources, *range(replicas))
    found = shares(group, Ordinal())
    sizes = [len(block) for block in found.values()]

    assert [r for block in found.values() for r in block] == list(group.resources)
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@given(st.integers(1, 60), st.integers(1, 12))
def test_literal_gives_the_whole_remainder_to_the_last_one_of_the_document(resources, replicas):
    """As the document computes it: of more members than resources, the first have one each."""
    used = min(resources, replicas)
    size, remainder = divmod(resources, used)
    sizes = [size] * (used - 1) + [size + remainder] + [0] * (replicas - used)
    found = counts(numbered(resources, *range(replicas)), Ordinal(literal=True))

    assert list(found.values()) == sizes


def test_a_roster_says_how_many_ordinals_there_are():
    """Whoever is there; an explicit number counts more."""
    group = numbered(12, 0, 1)
    expecting = replace(group, expected=frozenset({"m0", "m1", "m2", "laptop"}))

    assert list(counts(expecting, Ordinal()).values()) == [4, 8]
    assert list(counts(group, Ordinal()).values()) == [6, 6]
    assert shares(expecting, Ordinal(replicas=2)) == shares(group, Ordinal())


def test_a_processor_without_an_ordinal_is_refused():
    """The message says how it gets one."""
    with pytest.raises(ConfigurationError, match=r"give it, or an owner id that ends"):
        Ordinal().check(MemberFacts())


def test_a_processor_with_an_ordinal_beyond_the_replicas_is_refused():
    """The message names both numbers; the last ordinal is accepted."""
    Ordinal(replicas=4).check(MemberFacts(ordinal=3))
    Ordinal().check(MemberFacts(ordinal=3))
    with pytest.raises(
        ConfigurationError, match=r"ordinal is 4: the placement Ordinal:replicas=4 .* 0 to 3"
    ):
        Ordinal(replicas=4).check(MemberFacts(ordinal=4))


def test_no_replicas_are_refused():
    """There is no group of nothing."""
    with pytest.raises(ConfigurationError, match="replicas"):
        Ordinal(replicas=0)

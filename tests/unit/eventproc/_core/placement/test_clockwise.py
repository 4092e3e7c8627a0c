"""Orders of members clockwise on a circle, and the walk to the next place."""

from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.clockwise import Circle, Clockwise, Places
from eventproc._core.placement.placement import rank

members = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12)
resources = st.lists(st.text(max_size=3), min_size=1, max_size=20, unique=True)


def drawn_circle(owners: list[str]) -> Circle:
    """A circle with one point for each of these, spread evenly."""
    return Circle(((n + 1) * 2**64 // (len(owners) + 1), m) for n, m in enumerate(owners))


def test_members_follow_a_resource_by_their_points():
    """The resource 0 has the rank 9523843951405948789, which is beyond the point of b."""
    circle = Circle([(3 * 2**62, "c"), (2**62, "a"), (2**63, "b")])

    assert circle.points == [2**62, 2**63, 3 * 2**62]
    assert circle.members == ["a", "b", "c"]
    assert rank("0") > 2**63
    assert list(Clockwise(circle)("0")) == ["c", "a", "b"]


def test_a_member_at_the_rank_of_a_resource_comes_first():
    """The member after it comes second."""
    circle = Circle([(rank("0"), "a"), (rank("0") + 1, "b"), (rank("0") - 1, "c")])

    assert list(Clockwise(circle)("0")) == ["a", "b", "c"]


def test_behind_the_last_point_the_first_one_follows():
    """It is a circle."""
    circle = Circle([(1, "a"), (2, "b")])

    assert list(Clockwise(circle)("0")) == ["a", "b"]


def test_a_member_with_several_points_is_named_once():
    """Where it comes first."""
    circle = Circle([(1, "a"), (2, "b"), (3, "a"), (4, "c")])

    assert list(Clockwise(circle)("0")) == ["a", "b", "c"]


def test_without_members_the_order_is_empty():
    """And no place is found."""
    circle = Circle.of([])

    assert list(Clockwise(circle)("0")) == []
    assert Places(circle, {}).next("0") is None


def test_a_circle_of_members_has_their_ranks():
    """Whatever their order."""
    assert Circle.of(["b", "a"]).points == sorted([rank("a"), rank("b")])
    assert Circle.of(["b", "a"]).members == Circle.of(["a", "b"]).members


@given(members, resources, st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4)))
def test_the_next_place_is_that_of_the_first_member_of_the_order_below_its_quota(
    owners, names, left
):
    """However many members are full, and wherever their points lie."""
    circle = drawn_circle(owners)
    order, places = Clockwise(circle), Places(circle, left)
    for name in names:
        expected = next((m for m in order(name) if left.get(m, 0)), None)
        found = places.next(name)

        assert found == expected
        if found is not None:
            left[found] -= 1


def test_a_member_without_a_limit_always_has_a_place():
    """``None`` is no limit, and a member without a number has no place."""
    circle = Circle([(1, "a"), (2, "b"), (3, "c")])
    places = Places(circle, {"b": None, "c": 5})

    assert {places.next(str(number)) for number in range(100)} == {"b"}

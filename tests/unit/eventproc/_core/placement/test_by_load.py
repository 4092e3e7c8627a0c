"""``ByLoad``: what moves because of load, and when nothing does."""

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.by_load import ByLoad, Shares, is_structural
from eventproc._core.placement.even import Even
from eventproc._core.placement.loads import Loads
from eventproc._core.placement.placement import GroupState, MemberFacts
from eventproc._core.placement.plan import plan
from eventproc.errors import ConfigurationError

NOW_MS = 1_700_000_000_000
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
DEAD_BAND = 1 + ByLoad().dead_band


def group(owned, members, loads, *, moved_ms=(), now_ms=NOW_MS):
    """Return a group; *loads* are those of the resources in order, ``None`` is not measured."""
    resources = tuple(map(str, range(len(loads))))
    return GroupState(
        resources=resources,
        owner_by_resource={r: o for r, o in zip(resources, owned, strict=True) if o != "-"},
        members={member: MemberFacts() for member in members},
        loads=Loads(
            by_resource={
                r: load for r, load in zip(resources, loads, strict=True) if load is not None
            },
            now_ms=now_ms,
            moved_ms=tuple(moved_ms),
        ),
    )


def moved(state, placement=ByLoad()):  # noqa: B008 - immutable
    """Return the resources that get another owner."""
    planned = plan(state, placement)
    return {r: o for r, o in planned.items() if state.owner_by_resource.get(r) != o}


SITUATIONS = {
    "even": (group("aabb", "ab", [1, 1, 1, 1]), {}),
    "within the dead band": (group("aabb", "ab", [1.1, 1.1, 1, 1]), {}),
    "above it": (group("aabb", "ab", [3, 1, 0.5, 0.5]), {"1": "b"}),
    "one alone is the heaviest": (group("abb", "ab", [9, 1, 1]), {}),
    "it cannot be shared better": (group("aabc", "abc", [1, 1, 1, 1]), {}),
    "not measured: Even": (group("aaab", "ab", [None] * 4), {"2": "b"}),
    "no load at all: Even": (group("aaab", "ab", [0, 0, 0, 0]), {"2": "b"}),
    "too few are measured": (group("aabb", "ab", [3, 3, None, 0.1]), {}),
    "uneven counts with an even load stay": (group("aaab", "ab", [1, 1, 1, 3]), {}),
    "a member joins, an even load: Even": (group("aaaa", "ab", [1, 1, 1, 1]), {"2": "b", "3": "b"}),
    "a member joins, one is heavy": (group("aaaa", "ab", [6, 1, 1, 1]), {"1": "b"}),
    "a free resource goes to the least busy": (group("aab-", "ab", [1, 1, 9, 5]), {"3": "a"}),
    "a member is gone": (group("aaxx", "ab", [4, 4, 2, 2]), {"2": "b", "3": "b"}),
}


@pytest.mark.parametrize(("state", "expected"), SITUATIONS.values(), ids=SITUATIONS)
def test_a_group_gives_these_moves(state, expected):
    """Each situation names the owners, the members and the loads."""
    found = moved(state)

    assert len(found) == len(expected)
    assert set(found.values()) == set(expected.values())


UNEVEN = ("aaaabbbb", "ab", [4, 3, 2, 1, 0.1, 0.1, 0.1, 0.1])


@pytest.mark.parametrize(
    ("moved_ms", "count"),
    [
        ([], 2),
        ([NOW_MS - 5 * MINUTE_MS], 0),
        ([NOW_MS - 30 * MINUTE_MS, NOW_MS - 5 * MINUTE_MS], 0),
        ([NOW_MS - 7 * MINUTE_MS], 2),
        ([NOW_MS - 7 * MINUTE_MS] * 3, 1),
        ([NOW_MS - 7 * MINUTE_MS] * 4, 0),
        ([NOW_MS - HOUR_MS] * 4, 2),
    ],
    ids=["never", "cooling", "cooling again", "cooled", "one left", "none left", "an hour ago"],
)
def test_moves_because_of_load_are_rare(moved_ms, count):
    """A pause of six minutes, and two for each member in an hour."""
    owned, members, loads = UNEVEN
    state = group(owned, members, loads, moved_ms=moved_ms)

    assert len(moved(state)) == min(count, len(moved(group(*UNEVEN))))


def test_a_member_that_joins_gets_its_part_at_once():
    """However much moved because of load a moment ago."""
    state = group("aaaabbbb", "abc", [4, 3, 2, 1, 2, 2, 2, 2], moved_ms=[NOW_MS] * 9)

    assert "c" in moved(state).values()


loads = st.floats(0, 10)


@st.composite
def settled(draw):
    """Draw a group in which each resource has an owner, and each member a resource."""
    members = [f"m{n}" for n in range(draw(st.integers(1, 5)))]
    count = draw(st.integers(len(members), 25))
    owned = [*members, *draw(st.lists(st.sampled_from(members), min_size=count, max_size=count))]
    measured = draw(st.lists(loads, min_size=len(owned), max_size=len(owned)))
    return group(owned, members, measured)


@given(settled())
def test_while_members_stay_a_plan_makes_the_busiest_less_busy_or_moves_nothing(state):
    """And it moves no more than is allowed."""
    found = moved(state)
    before = Shares.of(state, state.loads.by_resource)
    after = before.after(plan(state, ByLoad()))
    if not any(state.loads.by_resource.values()):
        return

    assert not is_structural(state)
    assert len(found) <= ByLoad().moves_per_hour * len(state.members)
    assert not found or before.excess > DEAD_BAND
    assert after.excess <= before.excess + 1e-9


@given(settled())
def test_a_plan_that_was_carried_out_moves_nothing_before_the_cool_down(state):
    """So the leader publishes it once."""
    planned = plan(state, ByLoad())
    later = replace(
        state,
        owner_by_resource=planned,
        loads=replace(state.loads, moved_ms=(NOW_MS,) * len(moved(state))),
    )
    if moved(state) and any(state.loads.by_resource.values()):
        assert moved(later) == {}


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 3), st.floats(0.1, 10))
def test_an_even_load_is_shared_as_by_even(count, member_count, joining, load):
    """Not one move more, when members join and when they leave."""
    members = [f"m{n}" for n in range(member_count)]
    start = group(["-"] * count, members, [load] * count)
    owned = plan(start, Even())
    names = [f"m{n}" for n in range(1 if member_count > 1 else 0, member_count + joining)]
    state = replace(start, owner_by_resource=owned, members={name: MemberFacts() for name in names})

    planned = plan(state, ByLoad())
    even = plan(state, Even())
    assert sum(owned[r] != o for r, o in planned.items()) <= sum(
        owned[r] != o for r, o in even.items()
    )
    counts = [list(planned.values()).count(name) for name in names]
    assert max(counts) <= math.ceil(count / len(names)) or planned == even


@pytest.mark.parametrize("draw", range(20))
def test_zipf_loads_are_shared_well_with_few_moves(draw):
    """64 resources on eight members: at most eight moves."""
    weights = [1 / (number + 1) ** 1.1 for number in range(64)]
    Random(draw).shuffle(weights)
    members = [f"m{n}" for n in range(8)]
    start = group(["-"] * 64, members, weights)
    state = replace(start, owner_by_resource=plan(start, Even()))
    after = Shares.of(state, state.loads.by_resource).after(plan(state, ByLoad()))

    assert after.excess <= 1.2
    assert len(moved(state)) <= 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "cpu"}, "by is 'cpu': use one of busy, events, bytes"),
        ({"dead_band": 0}, "dead_band is 0: it must be above 0"),
        ({"moves_per_hour": 0}, "moves_per_hour is 0"),
        ({"moves_per_hour": 1.5}, "moves_per_hour is 1.5"),
    ],
)
def test_a_wrong_setting_is_refused(settings, message):
    """The message names the value."""
    with pytest.raises(ConfigurationError, match=message):
        ByLoad(**settings)

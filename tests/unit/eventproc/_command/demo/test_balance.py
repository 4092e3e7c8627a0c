"""When a group is balanced, and the fewest moves that a change needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._command.demo.report import fewest_moves, is_balanced
from eventproc._core.placement.even import even_plan

owners = st.lists(st.sampled_from(["A", "B", "C", None]), min_size=1, max_size=20).map(
    lambda names: {str(index): name for index, name in enumerate(names)}
)
alive = st.sets(st.sampled_from(["A", "B", "C", "D"]), min_size=1)


@pytest.mark.parametrize(
    ("names", "live", "expected"),
    [
        ("AABB", "AB", True),
        ("AAAB", "AB", False),
        ("AABB", "ABC", False),
        ("AABB", "A", False),
        ("AAB-", "AB", False),
        ("AABBC", "ABC", True),
        ("A", "AB", True),
        ("AA", "", False),
    ],
)
def test_a_group_is_balanced_if_live_processors_own_all_partitions_evenly(names, live, expected):
    """Their counts differ by one at most."""
    owned = {str(i): None if name == "-" else name for i, name in enumerate(names)}

    assert is_balanced(owned, set(live)) is expected


@given(owners, alive)
def test_the_plan_reaches_balance_with_the_fewest_moves(before, live):
    """So the bound is exact."""
    held = {p: owner for p, owner in before.items() if owner in live}
    after = even_plan(list(before), held, live)
    moved = sum(after[p] != owner for p, owner in before.items())

    assert is_balanced(after, live)
    assert fewest_moves(before, live) == moved

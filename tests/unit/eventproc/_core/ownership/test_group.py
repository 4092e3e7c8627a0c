"""Which standbys are active, and that this does not change while they take partitions over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.ownership.group import active_members
from eventproc._core.placement.even import even_plan

OLD = [f"old{number}" for number in range(8)]
NEW = [f"new{number}" for number in range(8)]


def shared(count: int, owners: list[str]) -> dict[str, str]:
    """*count* partitions, dealt out evenly."""
    return {str(number): owners[number % len(owners)] for number in range(count)}


def test_one_standby_becomes_active_for_one_owner_that_leaves():
    """The others go on waiting."""
    active = active_members(64, shared(64, OLD), {*OLD[1:], *NEW}, NEW)

    assert len(active & set(NEW)) == 1
    assert active - set(NEW) == set(OLD[1:])


@pytest.mark.parametrize("chosen", NEW)
def test_a_standby_that_has_begun_to_take_over_stays_active(chosen):
    """Whichever standby it is; the others wait for the next owner that leaves."""
    owners = {p: chosen if o == OLD[0] else o for p, o in shared(64, OLD).items()}
    owners["8"] = OLD[0]  # Its last partition, which is being drained.
    active = active_members(64, owners, {*OLD[1:], *NEW}, NEW)

    assert active == {*OLD[1:], chosen}


def test_all_standbys_are_active_if_there_are_no_owners():
    """Otherwise they would wait for ever."""
    assert active_members(64, {}, set(NEW), NEW) == set(NEW)


@given(
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(0, 8),
    st.integers(1, 40),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_take_over_moves_only_the_partitions_of_owners_that_leave(
    old_count, new_count, leaving_count, partition_count, is_released, rng
):
    """In whatever order it is carried out, and whether partitions are handed over or released.

    At most as many owners leave as standbys come: otherwise the owners that stay get some, too.
    """
    old, new = OLD[:old_count], NEW[:new_count]
    leaving_count = min(leaving_count, old_count, new_count)
    staying = set(old[leaving_count:])
    owners = before = shared(partition_count, old)
    if is_released:
        owners = {p: owner for p, owner in owners.items() if owner in staying}
    members = staying | set(new)
    while True:
        active = active_members(partition_count, owners, members, new)
        planned = even_plan([str(n) for n in range(partition_count)], owners, active)
        due = [p for p, owner in planned.items() if owners.get(p) != owner]
        if not due:
            break
        partition_id = rng.choice(due)
        owners = {**owners, partition_id: planned[partition_id]}

    kept = {p: owner for p, owner in before.items() if owner in staying}
    assert {p: owners[p] for p in kept} == kept
    assert len(owners) == partition_count

"""Which standbys are active, and that this does not change while they take over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.plan import plan
from eventproc.core.standby import active_members

OLD = [f"old{number}" for number in range(8)]
NEW = [f"new{number}" for number in range(8)]


def shared(count: int, owners: list[str]) -> dict[str, str]:
    """So many partitions, dealt out evenly."""
    return {str(number): owners[number % len(owners)] for number in range(count)}


def test_nobody_takes_part_while_nothing_is_vacant():
    """Whoever is there keeps what it has."""
    standing = active_members(64, shared(64, OLD), {*OLD, *NEW}, NEW)

    assert standing == set(OLD)


def test_one_leaver_is_replaced_by_one():
    """The others go on waiting for theirs."""
    standing = active_members(64, shared(64, OLD), {*OLD[1:], *NEW}, NEW)

    assert len(standing & set(NEW)) == 1
    assert standing - set(NEW) == set(OLD[1:])


@pytest.mark.parametrize("filling", NEW)
def test_who_has_begun_to_fill_a_vacancy_goes_on(filling):
    """Whoever it is; the others wait for the next one."""
    owners = {p: filling if o == OLD[0] else o for p, o in shared(64, OLD).items()}
    owners["8"] = OLD[0]  # The last of what it had: it is being drained.
    standing = active_members(64, owners, {*OLD[1:], *NEW}, NEW)

    assert standing == {*OLD[1:], filling}


def test_where_nobody_can_be_replaced_all_take_part():
    """Else they would wait for ever."""
    assert active_members(64, {}, set(NEW), NEW) == set(NEW)


@given(
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(0, 8),
    st.integers(1, 40),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_take_over_moves_what_is_vacant_and_nothing_else(
    old_count, new_count, leaver_count, partition_count, is_released, rng
):
    """In whatever order it is carried out, and whether it is handed over or released before.

    As many may leave as come: with fewer, the rest has to be shared by everybody.
    """
    old, new = OLD[:old_count], NEW[:new_count]
    leaver_count = min(leaver_count, old_count, new_count)
    staying = set(old[leaver_count:])
    owners = before = shared(partition_count, old)
    if is_released:
        owners = {p: owner for p, owner in owners.items() if owner in staying}
    members = staying | set(new)
    while True:
        standing = active_members(partition_count, owners, members, new)
        planned = plan([str(n) for n in range(partition_count)], owners, standing)
        due = [p for p, owner in planned.items() if owners.get(p) != owner]
        if not due:
            break
        partition_id = rng.choice(due)
        owners = {**owners, partition_id: planned[partition_id]}

    kept = {p: owner for p, owner in before.items() if owner in staying}
    assert {p: owners[p] for p in kept} == kept
    assert len(owners) == partition_count

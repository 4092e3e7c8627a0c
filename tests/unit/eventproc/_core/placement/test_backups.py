"""Each resource has as many backups as asked for, and none of them is its owner."""

from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.even import Even
from eventproc._core.placement.placement import GroupState, MemberFacts
from eventproc._core.placement.plan import backed_up_by, plan
from eventproc._core.placement.ring import Ring


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

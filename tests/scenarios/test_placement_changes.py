"""Processors with different placements in one group: while it changes from one to another."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import pytest

from eventproc import ConfigurationError, LoadBalancingStrategy
from eventproc._core.placement.clockwise import Circle, Clockwise
from eventproc._core.placement.even import Even
from eventproc._core.placement.names import most_named
from eventproc._core.placement.placement import GroupState, MemberFacts, Order, Placement
from eventproc._core.placement.plan import plan
from eventproc._core.placement.ring import Ring
from eventproc.models import Member
from eventproc.testing import StoreFaults
from tests.scenarios.group_setup import Setup, note_writes, seconds, stop_all
from tests.scenarios.test_deploys import OwnerChanges, started

NAMES = [f"host-{letter}" for letter in "abcde"]


@dataclass(frozen=True)
class FirstName(Placement):
    """A placement of the user's own: the member whose name sorts first gets everything."""

    is_sticky: ClassVar[bool] = False

    def order(self, state: GroupState) -> Order:
        """Return the members by name."""
        names = sorted(state.members)
        return lambda _: names


@dataclass(frozen=True)
class OwnRing(Placement):
    """A ring of the user's own, with one point for each member."""

    is_sticky: ClassVar[bool] = False

    def order(self, state: GroupState) -> Order:
        """Return the members as they follow the resource."""
        return Clockwise(Circle.of(state.members))


class PlacementChanges:
    """The placements that the group has, one after the other, until the end."""

    def __init__(self, setup: Setup) -> None:
        self.names: list[str] = []
        self.member_names: set[str] = set()
        self.end = note_writes(setup, "member_by_owner", self._written)
        self._written(setup.account.records(setup.group).member_by_owner)

    def _written(self, members: Mapping[str, Member], _owner_id: str = "") -> None:
        self.member_names.update(members)
        name = most_named([m.placement for m in members.values() if not m.is_leaving])
        if [name] != self.names[-1:]:
            self.names.append(name)


def planned(setup: Setup, placement: Placement) -> dict[str, str]:
    """Return the plan of the present owners under a placement."""
    owners = {p: owner for p, owner in setup.owners().items() if owner is not None}
    members = dict.fromkeys(sorted(set(owners.values())), MemberFacts())
    state = GroupState(resources=tuple(owners), owner_by_resource=owners, members=members)
    return plan(state, placement)


@pytest.mark.parametrize("strategy", LoadBalancingStrategy, ids=lambda strategy: strategy.value)
@pytest.mark.parametrize("new", [Ring(), OwnRing()], ids=["ring", "own"])
async def test_a_rolling_change_of_the_placement_moves_each_partition_once_at_most(strategy, new):
    """The group changes in the middle, once; a restart under the same owner id moves nothing."""
    setup = Setup(partition_count=20)
    settings = {"static_membership": True, "load_balancing_strategy": strategy}
    running = await started(setup, NAMES, placement=Even(), **settings)
    await seconds(30)
    placements, moves = PlacementChanges(setup), OwnerChanges(setup)
    before, after = setup.owners(), planned(setup, new)
    move_counts = []
    for number, name in enumerate(NAMES):
        await running[number].stop()
        await seconds(5)
        (running[number],) = await started(setup, [name], placement=new, **settings)
        await seconds(40)
        move_counts.append(moves.count.total())
    placements.end()
    moves.end()
    in_the_end = setup.owners()
    await stop_all(running)
    moving = [p for p, owner in before.items() if owner != after[p]]

    assert placements.names == ["Even", new.name]
    assert in_the_end == after
    assert moves.count == Counter(moving)
    assert len(moving) > 5
    if new == Ring():  # Processors with the old placement know it, too, so they carry it out.
        assert move_counts == [0, 0, *[len(moving)] * 3]
    else:  # Each processor keeps what it has until it knows the new placement.
        assert move_counts == sorted(move_counts)
        assert move_counts[:2] == [0, 0]


@pytest.mark.parametrize(("old", "new"), [(Even(), Ring()), (Ring(), Even())])
async def test_new_processors_with_another_placement_change_the_group_once(old, new):
    """In both directions: one starts, an old one stops, and so on."""
    setup = Setup(partition_count=20)
    running = await started(setup, NAMES, placement=old)
    await seconds(30)
    placements = PlacementChanges(setup)
    for number, name in enumerate(NAMES):
        running += await started(setup, [f"new-{name}"], placement=new)
        await seconds(30)
        await running[number].stop()
        await seconds(30)
    placements.end()
    is_as_planned = setup.owners() == planned(setup, new)
    await stop_all(running[len(NAMES) :])

    assert (placements.names, is_as_planned) == ([old.name, new.name], True)


async def test_a_processor_that_lacks_the_placement_of_the_group_is_refused_and_never_a_member():
    """However often its supervisor starts it: it writes no record, and nothing moves."""
    setup = Setup(partition_count=8)
    running = await started(setup, NAMES[:2], placement=FirstName())
    await seconds(30)
    placements, moves = PlacementChanges(setup), OwnerChanges(setup)
    for _ in range(20):
        refused = setup.processor(owner_id="new", placement=Even())
        slow = StoreFaults(delay_min=timedelta(seconds=0.2), delay_max=timedelta(seconds=0.2))
        setup.store_by_owner["new"].faults = slow
        with pytest.raises(ConfigurationError, match=r"FirstName', which this processor"):
            await refused.start()
        await seconds(2)
    placements.end()
    moves.end()
    await stop_all(running)

    assert placements.member_names == {*NAMES[:2]}
    assert not moves.count


async def test_a_processor_that_lacks_the_placement_of_a_group_that_starts_at_once_is_refused():
    """No record shows the others before it writes its own, so it reads the group once more."""
    setup = Setup(partition_count=8)
    good = [setup.processor(owner_id=name, placement=FirstName()) for name in NAMES[:2]]
    bad = setup.processor(owner_id="new", placement=Even())
    results = await asyncio.gather(*(p.start() for p in [*good, bad]), return_exceptions=True)
    await seconds(30)
    owners = set(setup.owners().values())
    members = {*setup.account.records(setup.group).member_by_owner}
    await stop_all(good)

    assert [type(result) for result in results] == [type(None), type(None), ConfigurationError]
    assert members == {*NAMES[:2]}
    assert owners == {NAMES[0]}


async def test_the_last_processor_with_the_former_placement_stops_without_an_error(caplog):
    """It does not know the one that the others follow from then on, and need not."""
    setup = Setup(partition_count=8)
    own = await started(setup, NAMES[:1], placement=OwnRing())
    even = await started(setup, NAMES[1:2], placement=Even())
    await seconds(30)
    before = setup.owners()
    await stop_all(even)
    await seconds(30)
    after = setup.owners()
    await stop_all(own)

    assert Counter(before.values()) == {NAMES[0]: 4, NAMES[1]: 4}
    assert set(after.values()) == {NAMES[0]}
    assert "placement_unknown" not in caplog.text

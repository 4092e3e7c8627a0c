"""Draws groups that a placement is checked with: members of many kinds, in the middle of moves."""

from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

from eventproc._core.placement.placement import GroupState, MemberFacts, Placement
from eventproc.errors import ConfigurationError

Draw: TypeAlias = Callable[[Random], GroupState]
"""Draws a group. Equal random numbers must give equal groups."""

RESOURCES_MAX: Final = 40
MEMBERS_MAX: Final = 9
WEIGHTS: Final = (1.0, 1.0, 1.0, 0.5, 2.0, 2.5)


def draw_group(random: Random) -> GroupState:
    """Draw a group with up to 40 resources and nine members.

    Resources are numbered, as partitions are. Some are free, and some belong to owners that leave.
    Some members own nothing. A third of the groups has capacities, which may be too small.
    """
    resources = tuple(str(number) for number in range(random.randint(1, RESOURCES_MAX)))
    names = [f"{random.choice('abc')}-{number}" for number in range(random.randint(1, MEMBERS_MAX))]
    random.shuffle(names)
    has_capacities = random.random() < 1 / 3
    facts = {
        name: MemberFacts(
            weight=random.choice(WEIGHTS),
            capacity=random.randint(1, 12) if has_capacities and random.random() < 0.8 else None,  # noqa: PLR2004
            ordinal=ordinal,
            deployment_id=random.choice(("", "1", "2")),
            is_foreign=random.random() < 0.2,  # noqa: PLR2004
        )
        for ordinal, name in enumerate(names)
    }
    leaving = names[random.randint(1, len(names)) :] if random.random() < 0.5 else []  # noqa: PLR2004
    owners = [None, *random.sample(names, random.randint(1, len(names)))]
    owned = {resource: random.choice(owners) for resource in resources}
    return GroupState(
        resources=resources,
        owner_by_resource={r: owner for r, owner in owned.items() if owner is not None},
        members={name: facts[name] for name in names if name not in leaving},
    )


def admitted(state: GroupState, placement: Placement) -> GroupState | None:
    """Return the group without members that could not join it; ``None`` if none could.

    The owners stay: what a member that is left out owns belongs to an owner that leaves.
    """
    members = {
        name: facts
        for name, facts in state.members.items()
        if (placement.admits_foreign if facts.is_foreign else _may_start(placement, facts))
    }
    return with_members(state, members) if members else None


def with_members(state: GroupState, members: dict[str, MemberFacts]) -> GroupState:
    """Return the group with other members."""
    return GroupState(
        resources=state.resources, owner_by_resource=state.owner_by_resource, members=members
    )


def with_owners(state: GroupState, owner_by_resource: dict[str, str]) -> GroupState:
    """Return the group with other owners."""
    return GroupState(
        resources=state.resources, owner_by_resource=owner_by_resource, members=state.members
    )


def _may_start(placement: Placement, facts: MemberFacts) -> bool:
    try:
        placement.check(facts)
    except ConfigurationError:
        return False
    return True

"""States of groups as input of placements: a line of text, or drawn by hypothesis."""

from collections import Counter
from random import Random

from hypothesis import strategies as st

from eventproc._core.placement.placement import GroupState, MemberFacts, Placement
from eventproc._core.placement.plan import plan
from eventproc.testing._placement_contract.drawing import admitted, draw_group


def state(resources: int, owned: str = "", /, **members: MemberFacts) -> GroupState:
    """A group of numbered resources. *owned* is one text for each owner: ``a:0,1,2 b:3``."""
    owner_by_resource: dict[str, str] = {}
    for text in owned.split():
        owner, _, numbers = text.partition(":")
        owner_by_resource |= dict.fromkeys(numbers.split(","), owner)
    return GroupState(
        resources=tuple(str(number) for number in range(resources)),
        owner_by_resource=owner_by_resource,
        members=members,
    )


def numbered(resources: int, *ordinals: int) -> GroupState:
    """A group of members ``p-N`` with these ordinals; no resource has an owner."""
    return state(resources, **{f"p-{n}": MemberFacts(ordinal=n) for n in ordinals})


def shares(seen: GroupState, placement: Placement) -> dict[str, list[str]]:
    """The planned resources of each member, in the order of the resources."""
    planned = plan(seen, placement)
    return {m: [r for r in seen.resources if planned.get(r) == m] for m in seen.members}


def counts(seen: GroupState, placement: Placement) -> dict[str, int]:
    """The number of planned resources of each member."""
    found = Counter(plan(seen, placement).values())
    return {member: found[member] for member in seen.members}


@st.composite
def states(draw, placement: Placement) -> GroupState:
    """A group whose members can all start with this placement."""
    drawn = None
    while drawn is None:
        seed = draw(st.integers(0, 2**32))
        drawn = admitted(draw_group(Random(seed)), placement)
    return drawn

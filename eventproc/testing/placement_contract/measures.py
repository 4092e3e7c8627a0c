"""What a placement costs: how much it moves, how evenly it shares, how long its plan takes."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from eventproc.core.placement.placement import Placement
from eventproc.core.placement.plan import plan
from eventproc.core.placement.state import GroupState, MemberFacts
from eventproc.testing.placement_contract.drawing import admitted, with_members, with_owners

RESOURCE_COUNT: Final = 10_000
MEMBER_COUNT: Final = 1_000
REPEATS: Final = 3


def moves_above_minimum(state: GroupState, placement: Placement) -> int:
    """How many resources move needlessly when a member joins the group at rest.

    The minimum is what must move so that each member owns as many resources as the plan gives it,
    whichever these are.
    """
    joining = max(state.members)
    others = {name: facts for name, facts in state.members.items() if name != joining}
    before = plan(with_members(with_owners(state, {}), others), placement)
    after = plan(with_owners(state, before), placement)
    moved = sum(after.get(resource, owner) != owner for resource, owner in before.items())
    needed = (Counter(before.values()) - Counter(after.values())).total()
    return moved - needed


def spread(state: GroupState, placement: Placement) -> int:
    """The difference between the largest and the smallest number of resources of a member.

    All have equal weights, no capacity, and ordinals without a gap.
    """
    equal = {
        name: replace(facts, weight=1.0, capacity=None, ordinal=ordinal)
        for ordinal, (name, facts) in enumerate(state.members.items())
    }
    planned = plan(with_members(with_owners(state, {}), equal), placement)
    counts = Counter(planned.values())
    return max(counts[name] for name in equal) - min(counts[name] for name in equal)


def plan_ms(placement: Placement) -> float:
    """How long the plan of 10,000 resources on 1,000 members takes, in CPU time.

    The longer of two: at the start, when no resource has an owner, and after a member joined. Each
    repetition has other members, so that no cache of the placement has their plan.
    """
    starts, joins = [], []
    settled = _large(
        {f"member-{n}": MemberFacts(ordinal=n) for n in range(MEMBER_COUNT)}, placement
    )
    owned = plan(settled, placement)
    for number in range(REPEATS):
        facts = {f"m{number}-{n}": MemberFacts(ordinal=n) for n in range(MEMBER_COUNT)}
        starts.append(_large(facts, placement))
        joining = {f"new-{number}": MemberFacts(ordinal=MEMBER_COUNT)}
        joined = _large({**settled.members, **joining}, placement)
        joins.append(with_owners(joined, dict(owned)))
    return max(shortest_ms(starts, placement), shortest_ms(joins, placement))


def _large(members: dict[str, MemberFacts], placement: Placement) -> GroupState:
    """Return a group of 10,000 free resources, and those of the members that can start."""
    resources = tuple(str(number) for number in range(RESOURCE_COUNT))
    state = GroupState(resources=resources, owner_by_resource={}, members=members)
    return admitted(state, placement) or with_members(state, {})


def shortest_ms(states: Sequence[GroupState], placement: Placement) -> float:
    """Return the shortest CPU time of the plans of these groups, in milliseconds."""
    took_s = []
    for state in states:
        begun_s = time.process_time()
        plan(state, placement)
        took_s.append(time.process_time() - begun_s)
    return 1000 * min(took_s)

"""The promises of a ``Placement``, as an executable suite, and what a placement costs.

Every placement of the library passes it, and a group works with any placement that does. It needs
no test framework, and raises ``AssertionError`` with the promise that is not kept.
"""

import os
import pickle
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from eventproc._core.placement.answer import Answer, answer, answer_pickled
from eventproc._core.placement.placement import GroupState, MemberFacts, Placement
from eventproc._core.placement.plan import plan
from eventproc.testing._placement_contract.drawing import (
    Draw,
    admitted,
    draw_group,
    with_members,
    with_owners,
)
from eventproc.testing._placement_contract.promises import (
    PROMISES,
    BrokenPromiseError,
    Case,
    quotas_are_counts,
    require_equal,
)

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


PROGRAM: Final = f"""
import sys
from {answer_pickled.__module__} import answer_pickled

out = sys.stdout.buffer
sys.stdout = sys.stderr  # what the placement's module prints is no part of the answer
out.write(answer_pickled(sys.stdin.buffer.read()))
"""


def answers_elsewhere(
    placement: Placement, states: Sequence[GroupState]
) -> Sequence[Answer] | None:
    """Return the answers of another process; ``None`` if the placement cannot be sent there.

    It can if ``pickle`` takes it, and its module can be imported: not ``__main__``, for example.

    Raises:
        RuntimeError: the placement fails there; the message has the error.
    """
    plain = [
        GroupState(
            resources=state.resources,
            owner_by_resource=dict(state.owner_by_resource),
            members=dict(state.members),
        )
        for state in states
    ]
    try:
        request = pickle.dumps((placement, plain))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    path = os.pathsep.join(entry or os.curdir for entry in sys.path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=request,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip())
    found: list[Answer] | None = pickle.loads(done.stdout)  # noqa: S301 - from the process started here
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementReport:
    """What ``check_placement`` found out about a placement that keeps its promises."""

    name: str
    """The placement's name in member records."""

    group_count: int
    """How many of the drawn groups have a member that can start with the placement."""

    is_checked_elsewhere: bool
    """Whether another process gave the same plans. It is false if the class cannot be imported
    there."""

    moves_above_minimum: float
    """How many resources move needlessly when a member joins a group at rest: the mean."""

    spread: int
    """The largest difference between the resource counts of two members of equal weight."""

    plan_ms: float
    """How long the plan of 10,000 resources on 1,000 members took, in ms of CPU time."""


def check_placement(
    placement: Placement,
    *,
    groups: int = 300,
    seed: int = 0,
    draw: Draw = draw_group,
    leaves_over: bool = False,
) -> PlacementReport:
    """Check that a placement keeps every promise that a group relies on.

    In each group:

    - The answer is the same for equal groups, whatever the order of owners and members; when asked
      again; and in another process with another ``PYTHONHASHSEED``.
    - It is computed from the group alone, without clock, random numbers and environment. Only
      functions that Python code calls are seen: not ``map(call, [time.time])``.
    - Quotas are counts and are kept, and a member that ``order`` leaves out gets nothing.
    - A resource has no planned owner only if no member may have it: because all of its order have
      their quota. That happens only if members state capacities that are too small.
    - The plan does not change while it is carried out, in any order, and not when it has been.

    Args:
        placement: The placement to check.
        groups: How many groups to draw.
        seed: Decides which groups are drawn.
        draw: Draws a group; pass your own if resources have names of a certain form, or if members
            need certain facts.
        leaves_over: Whether the placement may leave resources without an owner although members
            have capacity: because each may go to certain members only.

    Returns:
        What the placement costs.

    Raises:
        AssertionError: A promise is not kept; the message begins with its name, says how, and has
            the group.
        ValueError: No member of any drawn group could start with this placement.
    """
    random = Random(seed)  # noqa: S311 - drawn groups are no secret
    drawn = [admitted(draw(random), placement) for _ in range(groups)]
    states = [state for state in drawn if state is not None]
    if not states:
        raise ValueError(
            f"no member of {groups} drawn groups can start with the placement {placement.name}: "
            f"pass a function as draw that draws members which can"
        )
    answers = [_check(placement, state, random, leaves_over=leaves_over) for state in states]
    is_checked_elsewhere = _check_elsewhere(placement, states, answers)
    above = [moves_above_minimum(state, placement) for state in states]
    return PlacementReport(
        name=placement.name,
        group_count=len(states),
        is_checked_elsewhere=is_checked_elsewhere,
        moves_above_minimum=sum(above) / len(above),
        spread=max(spread(state, placement) for state in states),
        plan_ms=plan_ms(placement),
    )


def _check(placement: Placement, state: GroupState, random: Random, *, leaves_over: bool) -> Answer:
    """Check all promises for one group, and return the first answer."""
    with _naming(quotas_are_counts.__name__, state):
        quotas_are_counts(with_members(state, dict(state.members)), placement)
    with _naming("answers_every_group", state):
        first = answer(state, placement)
    case = Case(
        placement=placement, state=state, answer=first, random=random, leaves_over=leaves_over
    )
    for promise in PROMISES:
        with _naming(promise.__name__, state):
            promise(case)
    return first


def _check_elsewhere(
    placement: Placement, states: Sequence[GroupState], answers: Sequence[Answer]
) -> bool:
    """Compare with the answers of another process; return ``False`` if it could not be used."""
    name = "another_process_gives_the_same_answer"
    with _naming(name, None):
        found = answers_elsewhere(placement, states)
    if found is None:
        return False
    for state, here, there in zip(states, answers, found, strict=True):
        with _naming(name, state):
            require_equal(there, here, "in a process with another PYTHONHASHSEED")
    return True


@contextmanager
def _naming(promise: str, state: GroupState | None) -> Iterator[None]:
    """Raise what goes wrong as ``AssertionError`` with the promise and the group."""
    group = "" if state is None else f"\nthe group: {state}"
    try:
        yield
    except BrokenPromiseError as error:
        raise AssertionError(f"{promise}: {error}{group}") from None
    except Exception as error:
        raise AssertionError(f"{promise}: {error!r}{group}") from error

"""The promises of a ``Placement``, as an executable suite.

Every placement of the library passes it, and a group works with any placement that does. It needs
no test framework, and raises ``AssertionError`` with the promise that is not kept.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from eventproc.core.placement.placement import Placement
from eventproc.core.placement.state import GroupState
from eventproc.testing.placement_contract import measures
from eventproc.testing.placement_contract.drawing import Draw, admitted, draw_group, with_members
from eventproc.testing.placement_contract.other_process import answers_elsewhere
from eventproc.testing.placement_contract.promises import (
    PROMISES,
    Answer,
    BrokenPromiseError,
    Case,
    answer,
    quotas_are_counts,
    require_equal,
)


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
    above = [measures.moves_above_minimum(state, placement) for state in states]
    return PlacementReport(
        name=placement.name,
        group_count=len(states),
        is_checked_elsewhere=is_checked_elsewhere,
        moves_above_minimum=sum(above) / len(above),
        spread=max(measures.spread(state, placement) for state in states),
        plan_ms=measures.plan_ms(placement),
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

"""What a placement answers for a group: here, or asked by another process.

The contract of placements compares the answers of two processes. This module imports little, so
that the other process starts in a tenth of a second.
"""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eventproc._core.placement.placement import GroupState, Placement
from eventproc._core.placement.plan import plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The quotas and orders that a placement returns for a group, and the plan from them."""

    quotas: Mapping[str, int | None]
    order_by_resource: Mapping[str, Sequence[str]]
    plan: Mapping[str, str]


def answer(state: GroupState, placement: Placement) -> Answer:
    """Call a placement with a group that has members."""
    order = placement.order(state)
    return Answer(
        quotas=dict(placement.quotas(state)),
        order_by_resource={resource: tuple(order(resource)) for resource in state.resources},
        plan=plan(state, placement),
    )


def answer_pickled(request: bytes) -> bytes:
    """Return the pickled answers to a pickle of a placement and groups.

    It is ``None`` if the placement's class cannot be imported here.
    """
    try:
        placement, states = pickle.loads(request)  # noqa: S301 - from the process that started this one
    except (ImportError, AttributeError):
        return pickle.dumps(None)
    return pickle.dumps([answer(state, placement) for state in states])

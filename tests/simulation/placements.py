"""The placement of a world: drawn by its seed, beside everything else that the seed decides.

It has a random generator of its own, so a seed that draws ``Even`` and no ``RELEASE`` plays the
same scenario as without placements. Those of ``test_known`` do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from eventproc import EventProcessorConfig, LoadBalancingStrategy
from eventproc._core.placement.even import Even
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import GroupState, MemberFacts, Placement
from eventproc._core.placement.plan import plan
from eventproc._core.placement.published import Published
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted

STRATEGIES: Final = (
    LoadBalancingStrategy.BALANCED,
    LoadBalancingStrategy.GREEDY,
    LoadBalancingStrategy.COOPERATIVE,
)
"""Those that worlds draw first; then some get ``RELEASE`` instead."""

RELEASE_RATE: Final = 0.25
EVEN_RATE: Final = 0.6
UNEVEN: Final[tuple[Placement, ...]] = (
    Weighted(),
    Ordinal(),
    Ordinal(replicas=100),
    Ordinal(literal=True),
    Ring(),
    Ring(bound=1.25),
    Ring(bound=2.0),
    Ring(literal=True),
    Published(Even()),
    Published(Weighted()),
)


def with_placement(
    config: EventProcessorConfig, seed: int | str, *, has_foreign: bool = False
) -> EventProcessorConfig:
    """Return the same configuration, with a placement and perhaps the strategy ``RELEASE``.

    Beside foreign members only ``Even`` may be used.
    """
    placement, releases = draw_placement(seed)
    return replace(
        config,
        placement=Even() if has_foreign else placement,
        load_balancing_strategy=(
            LoadBalancingStrategy.RELEASE if releases else config.load_balancing_strategy
        ),
    )


def draw_placement(seed: int | str) -> tuple[Placement, bool]:
    """Draw a placement, and whether the strategy is ``RELEASE``; the same for the same seed."""
    rng = Random(f"rule/{seed}")
    releases, is_even = rng.random() < RELEASE_RATE, rng.random() < EVEN_RATE
    return (Even() if is_even else rng.choice(UNEVEN)), releases


def drawn_facts(
    seed: int | str, owner_id: str, placement: Placement, ordinal: int | None
) -> MemberFacts:
    """Return what a placement may know of a processor; the same in each of its restarts.

    With ``Weighted`` its weight is drawn, and sometimes a capacity, which may be too small.
    """
    if placement not in {Weighted(), Published(Weighted())}:
        return MemberFacts(ordinal=ordinal)
    rng = Random(f"facts/{seed}/{owner_id}")
    weight = rng.choice([0.5, 1.0, 1.0, 2.0, 3.0])
    return MemberFacts(
        weight=weight, capacity=rng.choice([None, None, None, 2, 5]), ordinal=ordinal
    )


def planned_owners(
    placement: Placement,
    partition_ids: Sequence[str],
    owner_by_partition: Mapping[str, str | None],
    members: Mapping[str, MemberFacts],
) -> dict[str, str]:
    """Return the owner that each partition should have, by records and members that are true."""
    owners = {p: owner_id for p, owner_id in owner_by_partition.items() if owner_id is not None}
    state = GroupState(resources=tuple(partition_ids), owner_by_resource=owners, members=members)
    return plan(state, placement)

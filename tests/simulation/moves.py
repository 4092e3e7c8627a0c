"""One change in a balanced group: only the fewest partitions may move, and none twice."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from eventproc import EventProcessorConfig
from eventproc._core.placement.even import Even
from eventproc.models import PartitionOwnership
from eventproc.testing import StoreFaults
from tests.simulation.actor import Actor
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.nodes import CheckedNode
from tests.simulation.placements import STRATEGIES, with_placement
from tests.simulation.world import World

SETTLED_WITHIN_S = 400.0
REST_INTERVALS = 3
NOTICED_AFTER = 1.5
"""Expirations until every processor knows that one is dead."""

CHANGES = (
    ("join", "leave", "crash", "turnover"),
    # With two deployment ids a new processor becomes active in two steps, which are two changes.
    ("leave", "crash", "replace"),
)


@dataclass
class MoveInvariants(Invariants):
    """Counts how often each partition changed its owner."""

    moves: Counter[str] = field(default_factory=Counter)
    owner_by_partition: dict[str, str] = field(default_factory=dict)

    def owned(
        self,
        actor: Actor,
        before: PartitionOwnership | None,
        after: PartitionOwnership,
        *,
        was_live: bool,
    ) -> None:
        """Count hand-overs, claims and steals; a release is half a move."""
        super().owned(actor, before, after, was_live=was_live)
        partition_id, owner_id = after.partition_id, after.owner_id
        if owner_id is not None and self.owner_by_partition.get(partition_id) != owner_id:
            self.owner_by_partition[partition_id] = owner_id
            self.moves[partition_id] += 1


class MovesWorld(World):
    """A world in which moves are counted."""

    invariants_class = MoveInvariants
    invariants: MoveInvariants
    deployment_id = "0"
    """Of the newest deployment."""


async def change_and_rest(seed: int) -> World:
    """Make one change after another, each when the group is balanced and at rest.

    Raises:
        Violation: More partitions moved than necessary, or one of them twice.
    """
    rng = Random(f"moves/{seed}")
    config = EventProcessorConfig(
        uses_store_thread=False,
        load_balancing_strategy=rng.choice(STRATEGIES),
        standby_timeout=timedelta(seconds=100),
    )
    config = with_placement(config, seed)
    world = MovesWorld(seed, partition_count=rng.randint(1, 20), config=config)
    world.set_faults(StoreFaults(delay_max=timedelta(seconds=rng.choice([0, 0.05, 0.4]))))
    try:
        await _change(world, "join", rng, 0)
        changes = rng.choice(CHANGES if config.placement.admits_standby else CHANGES[:1])
        for number in range(1, 4):
            await _change(world, rng.choice(changes), rng, number)
        await world.end()
    finally:
        world.stop_publishing()
        world.clean_up()
    return world


async def _change(world: MovesWorld, change: str, rng: Random, number: int) -> None:
    """Make a change, and compare the moves with the fewest possible."""
    moves, config = world.invariants.moves, world.config
    moves.clear()
    before = dict.fromkeys(world.hub.partition_ids()) | world.owner_by_partition()
    counts = world.owned_counts()
    nodes = rng.sample(world.there, k=len(world.there))
    if change in {"join", "turnover"}:
        for another in range(rng.randint(1, 5)):
            world.start(f"n{number}.{another}", deployment_id=world.deployment_id)
    if change == "replace":
        # The new processor starts first, on standby until its predecessor leaves.
        world.deployment_id = str(number)
        world.start(f"r{number}", deployment_id=world.deployment_id)
        await asyncio.sleep(rng.choice([0.1, 1, 10]))
        world.leave(nodes[0])
    elif change != "join":
        _end_some(world, change, nodes, rng.randint(1, max(1, len(nodes) - 1)))
        if change == "crash":
            await asyncio.sleep(config.ownership_expiration.total_seconds() * NOTICED_AFTER)
    await _come_to_rest(world)
    staying = {node.owner_id: counts[node.owner_id] for node in nodes if node.is_there}
    newcomers = [node.owner_id for node in world.there if node.owner_id not in counts]
    if config.placement == Even():
        least = fewest_moves(before, staying, newcomers)
    else:
        least = sum(before[p] != owner_id for p, owner_id in world.planned(before).items())
    if moves.total() > least or max(moves.values(), default=0) > 1:
        raise Violation(f"moves: {dict(moves)} at {change}, {least} are enough for {counts}")


def _end_some(world: MovesWorld, change: str, nodes: Sequence[CheckedNode], count: int) -> None:
    """Let the first *count* nodes crash or leave, but not the last one that is there.

    Deaths are noticed one after another, and a placement that is not sticky has another plan after
    each: then one crashes.
    """
    is_crash = change == "crash"
    most = 1 if is_crash and not world.config.placement.is_sticky else count
    for node in nodes[:most]:
        if len(world.there) > 1:
            (world.crash if is_crash else world.leave)(node)


async def _come_to_rest(world: World) -> None:
    await world.until("is_at_rest", SETTLED_WITHIN_S)
    await world.rest(REST_INTERVALS)


def fewest_moves(
    owner_by_partition: Mapping[str, str | None],
    staying: Mapping[str, int],
    newcomers: Collection[str],
) -> int:
    """Return how many partitions must move: those without an owner, and those above a share."""
    left = sum(owner_id not in staying for owner_id in owner_by_partition.values())
    minimum, extra_count = divmod(len(owner_by_partition), len(staying) + len(newcomers))
    over = [count - minimum for count in staying.values() if count > minimum]
    return left + sum(over) - min(extra_count, len(over))

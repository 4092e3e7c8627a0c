"""A group rests, then one thing changes: no more partitions may move than must, and none twice."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from eventproc import EventProcessorConfig, LoadBalancingStrategy
from eventproc.membership import LeaseMode
from eventproc.models import PartitionOwnership
from eventproc.testing import StoreFaults
from tests.simulation.actor import Actor
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.world import World

SETTLED_WITHIN_S = 400.0
REST_INTERVALS = 3
NOTICED_AFTER = 1.5
"""Expirations until everybody knows who is dead."""

CHANGES = (
    ("join", "leave", "crash", "turnover"),
    # Where there are two generations a newcomer takes part in two steps, which are two changes.
    ("leave", "crash", "replace"),
)


@dataclass
class MoveInvariants(Invariants):
    """Counts how often each partition came to another owner."""

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
        """Count it, whether it was given, claimed or stolen; a release is half a move."""
        super().owned(actor, before, after, was_live=was_live)
        partition_id, owner_id = after.partition_id, after.owner_id
        if owner_id is not None and self.owner_by_partition.get(partition_id) != owner_id:
            self.owner_by_partition[partition_id] = owner_id
            self.moves[partition_id] += 1


class MovesWorld(World):
    """A world in which moves are counted."""

    invariants_class = MoveInvariants
    invariants: MoveInvariants
    generation = "0"
    """Of the newest deploy."""


async def change_and_rest(seed: int) -> World:
    """Let one thing change after another, each when the group has come to rest.

    Raises:
        Violation: too many partitions moved, or one of them twice.
    """
    rng = Random(f"moves/{seed}")
    config = EventProcessorConfig(
        uses_store_thread=False,
        load_balancing_strategy=rng.choice(list(LoadBalancingStrategy)),
        lease_mode=rng.choice([*[LeaseMode.PARTITION] * 3, LeaseMode.SESSION]),
        reserve_patience=timedelta(seconds=100),
    )
    world = MovesWorld(seed, partition_count=rng.randint(1, 20), config=config)
    world.set_faults(StoreFaults(delay_max=timedelta(seconds=rng.choice([0, 0.05, 0.4]))))
    try:
        await _change(world, "join", rng, 0)
        changes = rng.choice(CHANGES)
        for number in range(1, 4):
            await _change(world, rng.choice(changes), rng, number)
        await world.end()
    finally:
        world.stop_publishing()
        world.bury()
    return world


async def _change(world: MovesWorld, change: str, rng: Random, number: int) -> None:
    """Let it happen, and count."""
    moves = world.invariants.moves
    moves.clear()
    before = dict.fromkeys(world.hub.partition_ids()) | world.owner_by_partition()
    counts = world.owned_counts()
    nodes = rng.sample(world.there, k=len(world.there))
    if change in {"join", "turnover"}:
        for another in range(rng.randint(1, 5)):
            world.start(f"n{number}.{another}", generation=world.generation)
    if change == "replace":
        # The new one is there first, and waits for its predecessor's share.
        world.generation = str(number)
        world.start(f"r{number}", generation=world.generation)
        await asyncio.sleep(rng.choice([0.1, 1, 10]))
        world.leave(nodes[0])
    elif change != "join":
        for node in nodes[: rng.randint(1, max(1, len(nodes) - 1))]:
            if len(world.there) > 1:
                (world.crash if change == "crash" else world.leave)(node)
        if change == "crash":
            await asyncio.sleep(world.config.ownership_expiration.total_seconds() * NOTICED_AFTER)
    await _come_to_rest(world)
    staying = {node.owner_id: counts[node.owner_id] for node in nodes if node.is_there}
    newcomers = [node.owner_id for node in world.there if node.owner_id not in counts]
    least = fewest_moves(before, staying, newcomers)
    if moves.total() > least or max(moves.values(), default=0) > 1:
        raise Violation(f"moves: {dict(moves)} at {change}, {least} are enough for {counts}")


async def _come_to_rest(world: World) -> None:
    await world.until("is_settled", SETTLED_WITHIN_S)
    await world.rest(REST_INTERVALS)


def fewest_moves(
    owner_by_partition: Mapping[str, str | None],
    staying: Mapping[str, int],
    newcomers: Collection[str],
) -> int:
    """How many partitions must move: what nobody holds any more, and what is too much."""
    left = sum(owner_id not in staying for owner_id in owner_by_partition.values())
    minimum, extra_count = divmod(len(owner_by_partition), len(staying) + len(newcomers))
    over = [count - minimum for count in staying.values() if count > minimum]
    return left + sum(over) - min(extra_count, len(over))

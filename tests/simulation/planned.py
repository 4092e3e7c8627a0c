"""Processors join and leave gracefully, without faults: no event may be handled twice."""

import asyncio
from datetime import timedelta
from random import Random
from typing import Any

from eventproc import CheckpointPolicy, EventProcessorConfig
from eventproc.testing import StoreFaults
from tests.simulation.invariants import Violation
from tests.simulation.placements import with_placement
from tests.simulation.world import World

SETTLED_WITHIN_S = 120.0


async def come_and_go(seed: int, make: type[World] = World, **settings: Any) -> World:
    """Let processors join and leave, sometimes during a rebalance.

    *settings* go to their configuration.

    Raises:
        Violation: An event was handled twice, a partition was stolen, or an invariant violated.
    """
    rng = Random(f"planned/{seed}")
    config = EventProcessorConfig(
        uses_store_thread=False,
        checkpoint_policy=rng.choice([CheckpointPolicy(), CheckpointPolicy.manual()]),
        **settings,
    )
    world = make(seed, partition_count=rng.randint(1, 16), config=with_placement(config, seed))
    world.set_faults(StoreFaults(delay_max=timedelta(seconds=rng.choice([0, 0.05, 0.4]))))
    world.behaviour.seconds_per_event = rng.choice([0.0, 0.01, 0.3])
    world.start("first")
    try:
        for number in range(rng.randint(2, 10)):
            leaving = rng.choice(world.there)
            if rng.random() < 0.4 and len(world.there) > 1:
                world.leave(leaving)
            else:
                world.start(f"n{number}")
            await asyncio.sleep(rng.choice([0, 0.3, 1, 5, 12, 30]))
        await world.until("is_balanced", SETTLED_WITHIN_S)
        world.stop_publishing()
        await world.until("is_all_handled", SETTLED_WITHIN_S)
        await world.rest(10)
        await world.end()
    finally:
        world.stop_publishing()
    duplicate_count, stolen_count = (
        world.invariants.duplicate_count,
        world.invariants.stolen_count,
    )
    if duplicate_count or stolen_count:
        raise Violation(f"{duplicate_count} events came twice, {stolen_count} steals")
    return world

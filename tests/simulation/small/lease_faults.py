"""Faults of ownership records: slow or lost renewals, and what renewals cost at rest."""

import asyncio
from dataclasses import replace
from random import Random

from eventproc.testing._faults import Fate
from tests.simulation.small.world import BUSY_S, SmallWorld, two_processors


async def adopt_too_late(world: SmallWorld, rng: Random) -> None:
    """A new owner asks for the checkpoint only when others have taken over, and renews nothing.

    It must not write over its successor's checkpoint.
    """
    await two_processors(world)
    world.behaviour.seconds_per_event = BUSY_S
    late_s = rng.uniform(1.1, 1.6) * world.expiration_s
    is_reading = False

    def late(called: str, fate: Fate) -> Fate:
        nonlocal is_reading
        if called == "read_checkpoint":
            is_reading = True
            return replace(fate, way_there_s=late_s)
        is_lost = called == "claim_ownership" and is_reading
        return replace(fate, is_carried_out=False, silence_s=0.5) if is_lost else fate

    (node,) = world.join()
    node.connection.fate = late
    await asyncio.sleep(rng.uniform(0, 1))
    world.leave(rng.choice([other for other in world.ours if other is not node]))
    await asyncio.sleep(world.shutdown_s + late_s + 0.8 * world.expiration_s)


async def slow_claims(world: SmallWorld, rng: Random) -> None:
    """Writes of ownership records are slow while one joins: nothing is lost or repeated."""
    await two_processors(world)
    cost, shares = world.cost(), world.shares()
    slow_s = rng.uniform(0.2, 0.5)

    def slow(called: str, fate: Fate) -> Fate:
        is_slow = called == "claim_ownership"
        return replace(fate, way_there_s=slow_s, way_back_s=slow_s) if is_slow else fate

    for node in world.ours:
        node.connection.fate = slow
    await asyncio.sleep(rng.uniform(0, 0.4) * world.expiration_s)
    (new,) = world.join()
    new.connection.fate = slow
    await asyncio.sleep(world.expiration_s / 2)
    await world.settle("join while claims are slow")
    if world.is_cooperative:
        world.expect_free(cost, "join while claims are slow")
        world.expect_fewest_moves(shares, "join while claims are slow")


async def rest(world: SmallWorld, rng: Random) -> None:
    """Nothing happens: no record is renewed before it is due.

    Listings are slow, so some are older than a renewal, and some are newer than its answer.
    """
    await two_processors(world)
    slow_s = rng.choice([0, rng.uniform(0.3, 1)])
    for node in world.ours:
        node.connection.fate = lambda called, fate: (
            replace(fate, way_back_s=slow_s) if called == "list_ownership" else fate
        )
    world.invariants.hurried.clear()
    await asyncio.sleep(rng.uniform(1, 1.5) * world.expiration_s)
    for node in world.ours:
        node.connection.fate = None
    world.expect(
        not world.invariants.hurried, f"records are written too often: {world.invariants.hurried}"
    )


LEASE_FAULTS = (adopt_too_late, slow_claims, rest)

"""Calls that hang, kill or outlast their lease, and processes that come back too late."""

import asyncio
from dataclasses import replace
from random import Random

from eventproc.testing._faults import Fate
from tests.simulation.small.world import BUSY_S, PLANNED_S, SmallWorld, two_processors

DEATH_S = 15.0
"""Seconds until a process that died serves again: its supervisor waits, and then its owner id."""


async def deadly_event(world: SmallWorld, rng: Random) -> None:
    """An event kills each process that handles it, until it is given up."""
    await world.catch_up()
    partition_id = rng.choice(list(world.hub.partition_ids()))
    newest = world.hub.partition_properties(partition_id).last_enqueued_sequence_number
    world.behaviour.deadly.add((partition_id, newest + 1))
    for _ in range(rng.randint(1, 3)):
        world.hub.publish(b"", partition_id=partition_id)
    deaths_max = world.invariants.deaths_max
    until_s = world.now_s + (deaths_max + 1) * (DEATH_S + world.expiration_s)
    while not world.handled_count(partition_id, newest + 1):
        world.expect(world.now_s < until_s, f"{newest + 1} of {partition_id} is not given up")
        await asyncio.sleep(1)
    world.behaviour.deadly.clear()
    await asyncio.sleep(DEATH_S)


async def hang_once(world: SmallWorld, rng: Random) -> None:
    """A call hangs: its partition is released, and handled by another call."""
    await world.catch_up()
    timeout = world.config.failover_timeout
    assert timeout is not None, "the condition of this situation"
    partition_id = rng.choice(list(world.hub.partition_ids()))
    newest = world.hub.partition_properties(partition_id).last_enqueued_sequence_number
    place = partition_id, newest + 1
    world.behaviour.hanging.add(place)
    world.hub.publish(b"", partition_id=partition_id)
    await asyncio.sleep(5)
    world.behaviour.hanging.discard(place)
    await asyncio.sleep(1.3 * timeout.total_seconds() + world.shutdown_s + PLANNED_S)
    world.expect(world.handled_count(*place), f"{place} hangs for ever")


async def sleep_offline(world: SmallWorld, rng: Random) -> None:
    """A machine sleeps during a call, and has no network for some seconds when it wakes up."""
    await two_processors(world)
    world.behaviour.seconds_per_event = 5.0
    await asyncio.sleep(rng.uniform(5, 8))
    node = world.choose(rng)
    slept_s = rng.uniform(0.8, 1.5) * world.expiration_s
    node.process.pause()
    await asyncio.sleep(slept_s)
    node.connection.is_out = True
    node.process.wake(slept_s)
    await asyncio.sleep(5)
    node.connection.is_out = False
    world.behaviour.seconds_per_event = world.usual_seconds_per_event
    await asyncio.sleep(world.interval_s)


async def steal_links(world: SmallWorld, rng: Random) -> None:
    """Partitions are stolen with their links: their former owners do not steal the links back."""
    await world.catch_up()
    opened, moves = world.invariants.opened, world.invariants.moves
    opened.clear()
    moves.clear()
    world.join()
    await world.settle("links are stolen")
    await asyncio.sleep(world.interval_s)
    if world.is_quick and not world.fails:
        for partition_id, count in opened.items():
            world.expect(
                count <= moves[partition_id],
                f"{count} links of {partition_id} were opened for {moves[partition_id]} moves",
            )


async def lose_during_long_call(world: SmallWorld, rng: Random) -> None:
    """A lease is lost during a call that goes on, and the partition has a new owner by the plan."""
    await world.catch_up()
    handoff_s = world.config.handoff_timeout.total_seconds()
    world.behaviour.ignores_cancellation = world.behaviour.ever_ignored_cancellation = True
    world.behaviour.seconds_per_event = 3 * handoff_s
    await asyncio.sleep(3.5)
    if rng.random() < 0.3 and len(world.ours) > 1:
        left = world.choose(rng)
        world.operator.rewrite_ownerships()
        await asyncio.sleep(rng.uniform(0, 1.5))
        world.leave(left)
        await world.until_gone(left)
    else:
        world.join()
        await asyncio.sleep(rng.uniform(0, 2.5))
        world.operator.rewrite_ownerships()
        await asyncio.sleep(handoff_s)
    world.behaviour.ignores_cancellation = False
    await asyncio.sleep(world.behaviour.seconds_per_event)


async def replace_promptly(world: SmallWorld, rng: Random) -> None:
    """A process is resumed as soon as another one with its owner id has joined; it ends.

    The claims of the other one arrive late.
    """
    await two_processors(world)
    world.behaviour.seconds_per_event = BUSY_S
    node = world.choose(rng)
    late_s = rng.choice([0.0, rng.uniform(0.5, 2)])
    node.process.pause()
    second = world.start(node.owner_id, is_supervised=False, deployment_id=world.deployment_id)
    second.connection.fate = _late_claims(late_s)
    await asyncio.sleep(rng.uniform(4, 4.6))
    world.shares()
    if second.is_over or not second.has_started:
        return
    released_count = world.invariants.released_count
    node.process.resume()
    await asyncio.sleep(world.expiration_s)
    world.expect(
        world.invariants.released_count == released_count, "a displaced process released partitions"
    )
    world.expect(node.is_over or node.is_gone, "a displaced process goes on")
    world.expect(not second.is_over, "a displaced process ended its successor")
    world.expect(not world.invariants.moves, "a displaced process moved partitions")


def _late_claims(late_s: float):
    def late(called: str, fate: Fate) -> Fate:
        return replace(fate, way_there_s=late_s) if called == "claim_ownership" else fate

    return late


SUSPECTS = (
    *(deadly_event, hang_once, sleep_offline, steal_links, lose_during_long_call),
    replace_promptly,
)
NEVER_STATIC = (lose_during_long_call,)
NEVER_PAUSED = (deadly_event, hang_once)
"""Situations in which a certain event has to be delivered."""
NEVER_COOPERATIVE = (steal_links,)
"""Situations in which partitions are stolen."""
NEEDS: dict[str, tuple[str, ...]] = {
    "deadly_event": ("deliveries",),
    "hang_once": ("stall",),
}
"""Conditions that a situation makes no sense without."""

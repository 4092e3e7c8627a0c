"""Two processes with one owner id: of a live one and a newcomer, of a paused one and its successor.

What counts is which of them stays, and that the other one changes no record.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random

from eventproc.testing._faults import Fate
from tests.simulation.nodes import CheckedNode
from tests.simulation.small.world import BUSY_S, LOOK_S, PLANNED_S, SmallWorld, two_processors


async def twin(world: SmallWorld, rng: Random) -> None:
    """A second process starts with the owner id of a live one: it is refused, at no cost.

    While its reads take longer than the live one takes to renew its member record, every write of
    the second one is out of date: it does not start, and it is refused once reads are quick.
    """
    await two_processors(world)
    world.behaviour.seconds_per_event = BUSY_S
    node = world.choose(rng)
    if _is_replaced(world, node):
        return
    count = rng.choice([0, 1, 2])

    def lost(called: str, fate: Fate) -> Fate:
        nonlocal count
        if called != "announce_member" or count == 0:
            return fate
        count -= 1
        return replace(fate, is_answered=False, silence_s=rng.uniform(0.2, 2))

    slow_s = rng.uniform(0.5, 1.5) * world.interval_s

    def slow(called: str, fate: Fate) -> Fate:
        return replace(fate, way_back_s=slow_s) if called.startswith("list") else fate

    is_slow = rng.random() < 0.4
    await _refuse(world, node, slow if is_slow else lost)


async def slow_twin(world: SmallWorld, rng: Random) -> None:
    """The same, but its first write arrives late, or its listings are answered late."""
    await two_processors(world)
    world.behaviour.seconds_per_event = BUSY_S
    node = world.choose(rng)
    if _is_replaced(world, node):
        return
    is_write = rng.random() < 0.5
    write_s = rng.uniform(0.3, 0.9) * world.expiration_s
    listing_s = rng.uniform(1.2, 2.6) * world.interval_s
    is_written = False

    def slow(called: str, fate: Fate) -> Fate:
        nonlocal is_written
        if called == "announce_member":
            is_written = True
            return replace(fate, way_there_s=write_s) if is_write else fate
        is_late = called == "list_members" and is_written and not is_write
        return replace(fate, way_back_s=listing_s) if is_late else fate

    second = await _refuse(world, node, slow)
    world.expect(not second.has_started, "a second process with one owner id was not refused")


def _is_replaced(world: SmallWorld, node: CheckedNode) -> bool:
    """Whether there are two with its owner id already: an earlier situation replaced one that was
    paused, and which has not ended yet because its successor serves nothing."""
    return sum(other.owner_id == node.owner_id for other in world.ours) > 1


async def _refuse(
    world: SmallWorld, node: CheckedNode, fate_of_second: Callable[[str, Fate], Fate]
) -> CheckedNode:
    """Start a second process with the owner id of a live node, and expect that it is refused.

    The successor stays instead if the records show that the node is dead, as they may for some
    seconds after an outage, or if the node has read nothing for long. So this waits until it polls.
    """
    began_s = world.now_s
    while node.owner_id in world.stale_members() or world.may_not_have_polled(node):
        world.expect(world.now_s - began_s <= PLANNED_S, f"{node.owner_id} is not a member again")
        await asyncio.sleep(LOOK_S)
    world.shares()
    cost = world.cost()
    second = world.start(node.owner_id, is_supervised=False, deployment_id=world.deployment_id)
    second.connection.fate = fate_of_second
    for _ in range(6):
        if not second.is_over:
            await asyncio.sleep(0.5 * world.expiration_s)
    second.connection.fate = None
    while not second.is_over:
        if world.now_s > second.connection.faulty_until_s + world.expiration_s:
            break
        await asyncio.sleep(LOOK_S)
    world.expect(
        second.is_over and not node.is_over, "the wrong one of two with one owner id ended"
    )
    world.expect_free(cost, "a second process with one owner id")
    world.expect(not world.invariants.moves, "a second process moved partitions")
    world.expect_nothing_taken(second.actor, "a second process that was refused")
    return second


async def replace_paused(world: SmallWorld, rng: Random) -> None:
    """Another process takes the owner id of a paused one, which ends when it is resumed.

    Perhaps the paused one does not know the outcome of its last renewals; perhaps it was asked to
    stop meanwhile; perhaps its first listings after the pause are lost.
    """
    await two_processors(world)
    world.behaviour.seconds_per_event = BUSY_S
    node = world.choose(rng)
    if rng.random() < 0.5:
        node.connection.fate = lambda called, fate: (
            replace(fate, is_answered=False, silence_s=1.0) if called == "claim_ownership" else fate
        )
        await asyncio.sleep(rng.uniform(0.35, 0.45) * world.expiration_s)
    node.process.pause()
    node.connection.fate = None
    await asyncio.sleep(rng.uniform(0.2, 0.7) * world.expiration_s)
    second = world.start(node.owner_id, is_supervised=False, deployment_id=world.deployment_id)
    for _ in range(4):
        if not second.served:
            await asyncio.sleep(0.5 * world.expiration_s)
    await asyncio.sleep(rng.uniform(0, 0.5) * world.expiration_s)
    if not second.served:
        return
    world.shares()
    world.invariants.taken.clear()
    if rng.random() < 0.3:
        node.leaving.set()
    _lose_listings(world, node)
    node.process.resume()
    if rng.random() < 0.3:
        await asyncio.sleep(rng.uniform(0, 1))
        node.leaving.set()
    await asyncio.sleep(world.expiration_s)
    world.expect(node.is_over or node.is_gone, "a displaced process goes on")
    world.expect(not second.is_over, "a displaced process ended its successor")
    world.expect(not world.invariants.moves, "a displaced process moved partitions")
    world.expect_nothing_taken(node.actor, "a displaced process")


def _lose_listings(world: SmallWorld, node: CheckedNode) -> None:
    """Perhaps lose the first listings of ownership records that a node requests from now on."""
    rng = Random(f"lost listings/{world.seed}")  # Apart: so the seeds that are kept stay the same.
    count = rng.choice([0, 0, 1, 2])

    def lost(called: str, fate: Fate) -> Fate:
        nonlocal count
        if called != "list_ownership" or count == 0:
            return fate
        count -= 1
        return replace(fate, is_carried_out=False, silence_s=0.2)

    node.connection.fate = lost


SHARED_IDS = (twin, slow_twin, replace_paused)

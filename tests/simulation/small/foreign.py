"""Foreign members: processors of an Azure SDK, which claim by rules of their own and never wait."""

import asyncio
from random import Random

from tests.simulation.nodes import CheckedNode
from tests.simulation.small.world import LOOK_S, PLANNED_S, SmallWorld

CLAIMED_POLLS = 1.6
"""Intervals within which a free partition is claimed: much less than ``handoff_timeout``, for which
a foreign member may leave its share unclaimed."""

SERVED_S = 1.5
"""Seconds within which a processor that claims several partitions serves all of them."""


async def foreign(world: SmallWorld, rng: Random) -> None:
    """A foreign member claims one partition and then nothing: others serve the rest."""
    await world.catch_up()
    partition_ids = list(world.hub.partition_ids())
    if len(partition_ids) < 2:
        return
    node = world.start_lazy(rng.choice(partition_ids))
    if rng.random() < 0.5:
        world.join()
    else:
        await asyncio.sleep(3)
        world.crash(world.choose(rng))
        if not world.ours:
            world.join()
    if rng.random() < 0.5:
        await asyncio.sleep(world.expiration_s)
        world.crash(node)
    await asyncio.sleep(3.5 * world.expiration_s)
    live = world.owner_by_partition()
    world.expect(len(live) == len(partition_ids), "a foreign member's share is not read")
    served = {p for n in world.ours for p in n.served}
    mine = {p for p, owner_id in live.items() if owner_id == node.owner_id}
    world.expect(served | mine == set(partition_ids), "a foreign member's share is not read")
    await _end(world, node)


async def free_beside_foreign(world: SmallWorld, rng: Random) -> None:
    """A partition becomes free that one of ours should own, not the foreign member: it claims it.

    The foreign member owns one partition, which is the least share. Of two shares that differ by
    one, the larger one belongs to a processor that can be made to claim it.
    """
    await world.catch_up()
    partition_count = len(world.hub.partition_ids())
    count = max(len(world.ours), partition_count // 2)
    if count >= partition_count:
        return
    world.join(count - len(world.ours))
    await world.settle("before a foreign member")
    node = await _add_foreign(world, rng, 1)
    await asyncio.sleep(rng.uniform(1, 2) * world.interval_s)
    partition_id = rng.choice(_owned_by_ours(world))
    world.operator.edit_ownership(partition_id, None)
    await asyncio.sleep(CLAIMED_POLLS * world.interval_s)
    if world.is_quick:
        world.expect(
            world.owner_by_partition().get(partition_id) in {n.owner_id for n in world.ours},
            f"nobody claims {partition_id}, which no foreign member should own",
        )
    await _end(world, node)


async def join_beside_foreign(world: SmallWorld, rng: Random) -> None:
    """One joins, and a foreign member owns one partition more than the least share: it keeps it."""
    await world.catch_up()
    partition_count = len(world.hub.partition_ids())
    count = partition_count // 2 - 1
    if count < 1:
        return
    for node in world.ours[count:]:
        world.leave(node)
        await world.until_gone(node)
    if len(world.ours) < count:
        world.join(count - len(world.ours))
    await world.settle("before a foreign member")
    node = await _add_foreign(world, rng, 2)
    kept = {p for p, owner_id in world.owner_by_partition().items() if owner_id == node.owner_id}
    world.shares()
    world.join()
    await world.settle("join beside a foreign member")
    moved = kept.intersection(world.invariants.moves)
    world.expect(not moved, f"{moved} were stolen from a foreign member that owned its share")
    await _end(world, node)


async def restart_beside_foreign(world: SmallWorld, rng: Random) -> None:
    """A processor that serves what a foreign member leaves unclaimed is killed, and started again.

    Its records still name it, so it serves all of these partitions again at once.
    """
    await world.catch_up()
    if len(world.hub.partition_ids()) < 4:
        return
    for node in world.ours[1:]:
        world.leave(node)
        await world.until_gone(node)
    node = await _add_foreign(world, rng, 1)
    (ours,) = world.ours
    await asyncio.sleep(rng.uniform(0, 2) * world.interval_s)
    world.crash(ours)
    new = world.start(ours.owner_id, deployment_id=world.deployment_id)
    while not new.served:  # noqa: ASYNC110 - another process may have its records first
        await asyncio.sleep(LOOK_S)
    await asyncio.sleep(SERVED_S)
    if world.is_quick:
        left = set(_owned_by_ours(world)) - new.served
        world.expect(not left, f"{new.owner_id} does not serve {left} when it is back")
    await _end(world, node)


async def _add_foreign(world: SmallWorld, rng: Random, count: int) -> CheckedNode:
    """Add a foreign member; wait until it has claimed as many partitions as it ever will."""
    node = world.start_lazy(*rng.sample(list(world.hub.partition_ids()), count))
    began_s = world.now_s
    while not (world.owned_counts()[node.owner_id] == count and world.is_settled):
        world.expect(world.now_s - began_s < PLANNED_S, "a foreign member gets no partition")
        await asyncio.sleep(0.05)
    return node


def _owned_by_ours(world: SmallWorld) -> list[str]:
    owner_ids = {node.owner_id for node in world.ours}
    return [p for p, owner_id in world.owner_by_partition().items() if owner_id in owner_ids]


async def _end(world: SmallWorld, node: CheckedNode) -> None:
    """Stop a foreign member, to which nothing was ever handed over."""
    world.expect(
        node.owner_id not in world.invariants.given_to,
        "a partition was handed over to a foreign member, which may not notice it",
    )
    if not node.process.is_killed:
        world.leave(node)
        await world.until_gone(node)


FOREIGN = (foreign, free_beside_foreign, join_beside_foreign, restart_beside_foreign)
NEVER_STATIC = (join_beside_foreign, restart_beside_foreign)

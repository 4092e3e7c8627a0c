"""Planned changes: processors join, leave, are replaced and restarted. Each must cost nothing."""

import asyncio
from random import Random

from eventproc._core.ownership.stability import STABLE_AFTER_CYCLES
from eventproc._core.placement.even import Even
from eventproc.models import MemberStatus
from tests.simulation.nodes import CheckedNode
from tests.simulation.small.world import PLANNED_S, SmallWorld, two_processors
from tests.simulation.world import CLOCK_RATE_MAX, START_AGAIN_AFTER_S

MEMBERS_MAX = 4
FORGOTTEN_AFTER = 11.5
"""Expirations after which the member records of dead processors are deleted."""

LEFT_S = 2.0
"""Within so many seconds after one has left, others own what it had, if they claim all at once."""

STANDBY_POLLS = 4
"""Polls within which a standby processor takes the place of one that left."""


async def join(world: SmallWorld, rng: Random) -> None:
    """One to three processors join: the fewest partitions move, each once."""
    await world.catch_up()
    cost, shares = world.cost(), world.shares()
    world.join(rng.randint(1, 3))
    await world.settle("join")
    world.expect_fewest_moves(shares, "join")
    if world.is_cooperative:
        world.expect_free(cost, "join")


async def leave(world: SmallWorld, rng: Random) -> None:
    """One processor leaves: the others serve its partitions before its leases expire."""
    await two_processors(world)
    cost, shares = world.cost(), world.shares()
    left = world.choose(rng)
    world.leave(left)
    await world.until_gone(left)
    await world.settle("leave", LEFT_S + world.further_s(shares, left.owner_id))
    world.expect_fewest_moves(shares, "leave")
    world.expect_free_leave(cost, shares, "leave")
    world.expect(left.owner_id not in world.records().member_by_owner, "its member record is left")


async def turnover(world: SmallWorld, rng: Random) -> None:
    """Some join and one leaves at the same time: every partition is served all the while."""
    await two_processors(world)
    cost = world.cost()
    left = world.choose(rng)
    if rng.random() < 0.5:
        world.join(rng.randint(1, 2))
        await asyncio.sleep(rng.uniform(0, 2.5))
        world.leave(left)
    else:
        world.leave(left)
        await asyncio.sleep(rng.uniform(0, world.shutdown_s))
        world.join()
    await world.settle("turnover")
    if world.is_cooperative:
        world.expect_free(cost, "turnover")


async def leave_together(world: SmallWorld, rng: Random) -> None:
    """Two leave one shortly after the other."""
    await world.catch_up()
    if len(world.ours) < 3:
        world.join(3 - len(world.ours))
        await world.settle("three")
        await world.catch_up()
    cost, shares = world.cost(), world.shares()
    is_taken, plans = False, [shares.owners]  # The second may leave before or after the first plan.
    for node in rng.sample(world.ours, 2):
        world.leave(node)
        is_taken |= any(world.is_taken(owners) for owners in plans)
        plans.append(world.planned(plans[-1]))
        await asyncio.sleep(rng.uniform(0, 2.5))
    await world.settle("leave together")
    if world.is_cooperative or not is_taken:
        world.expect_free(cost, "leave together")


async def join_while_draining(world: SmallWorld, rng: Random) -> None:
    """One joins, and another one while partitions are drained for the first."""
    await world.catch_up()
    cost = world.cost()
    world.behaviour.seconds_per_event = rng.choice([0.5, 1.0])
    await asyncio.sleep(2)
    world.join()
    await asyncio.sleep(rng.uniform(0.3, 2.5))
    world.join()
    await asyncio.sleep(3)
    world.behaviour.seconds_per_event = world.usual_seconds_per_event
    await world.settle("join while draining")
    if world.is_cooperative:
        world.expect_free(cost, "join while draining")


async def join_and_free(world: SmallWorld, rng: Random) -> None:
    """Some join while an operator frees a partition: claims and steals fall together."""
    await world.catch_up()
    world.join(rng.randint(1, 2))
    await asyncio.sleep(rng.uniform(0, 0.3))
    partition_ids = list(world.hub.partition_ids())
    world.operator.edit_ownership(rng.choice(partition_ids), None)
    await world.settle("join and free")


async def join_and_leave_at_once(world: SmallWorld, rng: Random) -> None:
    """A new processor is asked to stop before the rebalance is over."""
    await world.catch_up()
    cost = world.cost()
    (new,) = world.join()
    await asyncio.sleep(rng.uniform(0, 4))
    world.leave(new)
    await world.until_gone(new)
    await world.settle("it joined and left")
    if world.is_cooperative:
        world.expect_free(cost, "it joined and left")


async def restart_in_place(world: SmallWorld, rng: Random) -> None:
    """A processor is stopped, and started again with its owner id before it has gone.

    The one that leaves is live, so it may refuse the other one; a supervisor then tries again.
    """
    await two_processors(world)
    cost = world.cost()
    left = world.choose(rng)
    world.leave(left)
    await asyncio.sleep(rng.uniform(0, 1.3 * world.shutdown_s))
    new = world.start(left.owner_id, deployment_id=world.deployment_id)
    await world.until_gone(left)
    await world.settle("restarted in place", PLANNED_S + world.expiration_s / 2)
    if new.is_over:
        await asyncio.sleep(START_AGAIN_AFTER_S)
    await world.settle("restarted in place", PLANNED_S + world.expiration_s / 2)
    if world.is_cooperative:
        world.expect(world.cost().stolen_count == cost.stolen_count, "a restart makes a steal")


async def start_together(world: SmallWorld, rng: Random) -> None:
    """All stop, and a new group starts at once: each partition is claimed once."""
    await world.catch_up()
    stopped = set[str]()
    while world.ours:  # A supervisor may start a refused one while the others stop.
        for node in world.ours:
            world.leave(node)
            stopped.add(node.owner_id)
        for node in [node for node in world.nodes if not node.is_there]:
            await world.until_gone(node)
    world.expect(not world.live_records(), "stopped processors own something")
    members = stopped.intersection(world.records().member_by_owner)
    world.expect(not members, f"stopped processors are members: {members}")
    cost, shares = world.cost(), world.shares()
    for _ in range(rng.randint(2, MEMBERS_MAX)):
        world.join()
        await asyncio.sleep(rng.choice([0, 0, 0.05]))
    await world.settle("start together")
    world.expect_fewest_moves(shares, "start together")
    world.expect_free(cost, "start together")


async def join_after_long_rest(world: SmallWorld, rng: Random) -> None:
    """Nothing changes for a long time; then one joins."""
    await two_processors(world)
    long = FORGOTTEN_AFTER if rng.random() < 0.1 else rng.uniform(1.2, 2.6)
    await asyncio.sleep(world.expiration_s * long)
    world.expect(
        not world.stale_members(), f"members that own nothing expired: {world.stale_members()}"
    )
    await join(world, rng)


async def idle_member(world: SmallWorld, rng: Random) -> None:
    """There are more processors than partitions: the idle ones stay members."""
    partition_count = len(world.hub.partition_ids())
    if len(world.ours) <= partition_count <= MEMBERS_MAX:
        world.join(partition_count + 1 - len(world.ours))
    await world.settle("idle member")
    world.shares()
    await asyncio.sleep(world.expiration_s * rng.uniform(1.1, 1.6))
    world.expect(not world.stale_members(), f"idle members expired: {world.stale_members()}")
    world.expect(not world.invariants.moves, "partitions moved at rest")


async def deploy(world: SmallWorld, rng: Random) -> None:
    """A rolling deployment: new processors are standby until an old one leaves."""
    await two_processors(world)
    old = world.ours
    cost, shares = world.cost(), world.shares()
    world.deployment_id = f"{len(world.nodes)}"
    first = world.join(rng.randint(1, 2))
    await asyncio.sleep(3)
    world.expect(not world.invariants.moves, "a standby processor got a partition")
    what = rng.choice(["leave", "crash", "wait"])
    # Vacancies are counted in equal shares: with other shares, none or two may take one's place.
    has_vacancy = len(old) <= len(world.hub.partition_ids()) and world.config.placement == Even()
    if what == "leave" and has_vacancy:
        await _replace(world, rng, old[0], first)
        if world.is_cooperative:
            world.expect_free(cost, "deploy")
    elif what != "wait":
        for node in old:
            world.crash(node)
        await world.settle("the old deployment crashed", 2 * world.expiration_s)
    else:
        patience_s = world.config.standby_timeout.total_seconds()
        await world.settle("standby for too long", patience_s + PLANNED_S)
        world.expect_fewest_moves(shares, "standby for too long", _late(world, first))
    for node in old:
        if not node.is_gone:
            world.leave(node)
            await world.until_gone(node)
    await world.settle("deployed")


def _late(world: SmallWorld, first: list[CheckedNode]) -> list[str]:
    """Return the standby processor that joined so late that others may have acted before.

    They join when they poll. No processor acts until two of its polls, each of two requests, show
    the change of the members.
    """
    stable_s = STABLE_AFTER_CYCLES * world.config.rebalance_interval.total_seconds()
    unacted_s = max(0.0, stable_s / (1 + CLOCK_RATE_MAX) - world.requests_s / 2)
    found_s = world.invariants.active_since_s
    since_s = {node.owner_id: found_s.get(node.owner_id, world.now_s) for node in first}
    began_s = min(since_s.values())
    return [owner_id for owner_id, at_s in since_s.items() if at_s - began_s > unacted_s]


async def _replace(
    world: SmallWorld, rng: Random, old: CheckedNode, new: list[CheckedNode]
) -> None:
    """One of the old ones leaves: one of the new ones takes its place.

    If it had several times the share of another one, as many may take it: a vacancy is counted in
    shares of those that stay. In some worlds another new one joins while that happens.
    """
    members = world.records().member_by_owner
    counts = world.owned_counts()
    left = counts.pop(old.owner_id)
    share = min((count for count in counts.values() if count), default=left)
    world.leave(old)
    if rng.random() < 0.6:
        await asyncio.sleep(rng.uniform(0.5, 1.5 * world.shutdown_s))
        new += world.join()
    await world.until_gone(old)
    active: list[CheckedNode] = []
    for _ in range(STANDBY_POLLS):
        await asyncio.sleep(world.interval_s)
        active = [
            n
            for n in new
            if n.owner_id in members and members[n.owner_id].status is MemberStatus.ACTIVE
        ]
    places = max(1, left // max(1, share))
    world.expect(1 <= len(active) <= places, f"{len(active)} took the place of one")
    moves = world.invariants.moves
    world.expect(max(moves.values(), default=0) <= 1, f"moved twice: {dict(moves)}")


async def restart_with_leases(world: SmallWorld, rng: Random) -> None:
    """With static membership a processor restarts, and nothing moves."""
    if not world.config.static_membership:
        return
    await world.catch_up()
    world.shares()
    node = world.choose(rng)
    world.leave(node)
    await world.until_gone(node)
    await asyncio.sleep(rng.uniform(0, world.expiration_s / 3))
    world.start(node.owner_id, deployment_id=world.deployment_id)
    await world.settle("restart with its leases", 3)
    world.expect(not world.invariants.moves, "a static restart moves partitions")


PLANNED = (
    *(join, leave, turnover, leave_together, join_and_leave_at_once, restart_in_place),
    *(start_together, join_after_long_rest, idle_member, deploy, restart_with_leases),
    *(join_while_draining, join_and_free),
)
NEVER_STATIC = (
    *(leave, turnover, leave_together, join_and_leave_at_once, restart_in_place),
    *(start_together, deploy),
)
"""Situations in which a processor stops for good: with static membership it keeps its leases."""
STANDBY = (deploy,)
"""Situations in which processors stand by."""

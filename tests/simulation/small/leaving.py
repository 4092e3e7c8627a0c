"""Leaving and joining at the last moment: while a partition is on its way, or the plan changes."""

import asyncio
from dataclasses import replace
from random import Random

from eventproc.models import MemberStatus
from eventproc.testing._faults import Fate
from tests.simulation.nodes import CheckedNode
from tests.simulation.small.world import (
    LOOK_S,
    PLANNED_S,
    POLL_FACTOR_MAX,
    SmallWorld,
    two_processors,
)

DRAINED_S = 2.0
"""Less than the time that calls have to end while a partition is drained."""

GIVEN_S = 0.45
"""Seconds until a new owner that polled serves a partition which it was given."""


CLAIMED_S = 5.0
"""Within so many seconds a free partition is claimed, even if members change all the time."""


async def leave_served(world: SmallWorld, rng: Random) -> None:
    """One leaves just after another one polled: its partitions go to their next owners by name.

    They are served all the while, but for the time in which the other one may not know of it. The
    one that leaves waits for that. Another owner does not: with a placement that is not sticky the
    plan may take a partition from it, which the next owner serves when it polls. In some worlds one
    joins before the partitions are drained.
    """
    await two_processors(world)
    while world.stale_members():  # noqa: ASYNC110 - its requests arrive again since a moment
        await asyncio.sleep(LOOK_S)
    released_count = world.invariants.released_count
    left = world.choose(rng)
    await _until_polled(world, rng.choice([node for node in world.ours if node is not left]))
    owners = world.owner_by_partition()
    served = asyncio.create_task(_longest_unserved_s(world, PLANNED_S))
    world.leave(left)
    is_alone = rng.random() < 0.5
    if not is_alone:
        await asyncio.sleep(rng.uniform(0.1, 1))
        world.join()
    await world.until_gone(left)
    unserved_s = await served
    delay_s = min(1.1 * world.interval_s, world.shutdown_s / 3)
    noticed_s = 1.1 * world.interval_s - delay_s + GIVEN_S
    polled_s = POLL_FACTOR_MAX * world.interval_s + GIVEN_S
    is_sticky = world.config.placement.is_sticky
    for p, for_s in unserved_s.items() if world.is_quick and is_alone else ():
        most_s = noticed_s if is_sticky or owners.get(p) == left.owner_id else polled_s
        world.expect(for_s <= most_s, f"{p} was not served for {for_s} s")
    if world.is_quick:
        _expect_none_released(world, released_count)


def _expect_none_released(world: SmallWorld, before: int) -> None:
    count = world.invariants.released_count - before
    world.expect(not count, f"{count} partitions were released that could be handed over")


async def _until_polled(world: SmallWorld, node: CheckedNode) -> None:
    """Wait until a processor reads the members."""
    polled = asyncio.Event()

    def note(called: str, fate: Fate) -> Fate:
        if called == "list_members":
            polled.set()
        return fate

    node.connection.fate = note
    await polled.wait()
    node.connection.fate = None


async def _longest_unserved_s(world: SmallWorld, for_s: float) -> dict[str, float]:
    """Return for how long, at most, each partition was served by no processor."""
    until_s = world.now_s + for_s
    since_s = dict.fromkeys(world.hub.partition_ids(), world.now_s)
    longest_s = dict.fromkeys(since_s, 0.0)
    while world.now_s < until_s:
        served = {p for node in world.nodes if not node.is_gone for p in node.served}
        since_s.update(dict.fromkeys(served, world.now_s))
        for p, at_s in since_s.items():
            longest_s[p] = max(longest_s[p], world.now_s - at_s)
        await asyncio.sleep(0.1)
    return longest_s


async def leave_while_given(world: SmallWorld, rng: Random) -> None:
    """A new processor leaves while a partition is on its way to it: others serve that at once."""
    await world.catch_up()
    late_s = rng.uniform(0.4, 0.9)
    released_count = world.invariants.released_count
    for node in world.ours:
        node.connection.fate = _late("claim_ownership", late_s)
    world.behaviour.seconds_per_event = 0.3
    (new,) = world.join()
    await _until_recorded(world, new, MemberStatus.ACTIVE)
    for _ in range(int(PLANNED_S / 0.02)):
        if new.owner_id in world.invariants.given_to:
            break
        await asyncio.sleep(0.02)
    await asyncio.sleep(rng.uniform(0, 0.5) * late_s)
    world.leave(new)
    await world.until_gone(new)
    for node in world.ours:
        node.connection.fate = None
    await world.settle("it left while it was given a partition")
    if world.is_quick:
        _expect_none_released(world, released_count)


async def leave_while_draining(world: SmallWorld, rng: Random) -> None:
    """A new processor leaves while partitions are drained for it: they stay where they are."""
    await world.catch_up()
    giver = world.choose(rng)
    world.behaviour.seconds_per_event = DRAINED_S
    (new,) = world.join()
    await _until_recorded(world, new, MemberStatus.ACTIVE)
    await _until_polled(world, giver)
    for partition_id in world.hub.partition_ids():
        world.hub.publish(b"", partition_id=partition_id)
    await asyncio.sleep(rng.uniform(0.3, 0.6))
    world.leave(new)
    await world.until_gone(new)
    world.behaviour.seconds_per_event = world.usual_seconds_per_event
    await world.settle("it left while partitions were drained for it")


def _late(method: str, late_s: float):
    def late(called: str, fate: Fate) -> Fate:
        return replace(fate, way_there_s=late_s) if called == method else fate

    return late


async def _until_recorded(world: SmallWorld, node: CheckedNode, status: MemberStatus) -> None:
    """Wait until the member record of a processor has a status."""
    began_s = world.now_s
    while world.now_s - began_s < PLANNED_S:
        found = world.records().member_by_owner.get(node.owner_id)
        if found is not None and found.status is status:
            return
        await asyncio.sleep(0.05)


async def churn(world: SmallWorld, rng: Random) -> None:
    """Members come and go all the time; partitions without an owner are claimed nevertheless."""
    await world.catch_up()
    partition_ids, staying = list(world.hub.partition_ids()), {n.owner_id for n in world.ours}
    passing = world.join()
    began_s, is_freed, is_enough = world.now_s, False, True
    while world.now_s - began_s < CLAIMED_S:
        passing += world.join()
        is_enough &= _have_share(world, staying)
        await asyncio.sleep(rng.uniform(0.1, 0.12))
        world.leave(passing[-2])
        is_enough &= _have_share(world, staying)
        await asyncio.sleep(rng.uniform(0.05, 0.08))
        if is_freed and world.owner_by_partition():
            break
        if not is_freed and world.now_s - began_s > 0.5:
            is_freed = True
            for partition_id in partition_ids:
                world.operator.edit_ownership(partition_id, None)
    if world.is_quick and is_enough:
        world.expect(world.owner_by_partition(), "nothing is claimed while members change")
    world.leave(passing[-1])
    for node in passing:
        await world.until_gone(node)


def _have_share(world: SmallWorld, staying: set[str]) -> bool:
    """Whether the plan of the present members gives one of those that stay a free partition.

    Whichever membership each of them reads, it then has something to claim. Otherwise all may be
    planned for members that have gone before they claim, if there are few partitions, or if those
    have more points or a greater weight; and one that has nothing to claim polls seldom.
    """
    return not staying.isdisjoint(world.planned({}).values())


async def outage_while_joining(world: SmallWorld, rng: Random) -> None:
    """The store is unreachable during a rebalance: after it, owners have time to hand over."""
    await world.catch_up()
    cost = world.cost()
    world.behaviour.seconds_per_event = DRAINED_S
    await asyncio.sleep(2 * DRAINED_S)
    world.join()
    await asyncio.sleep(rng.uniform(0.4, 2))
    for node in world.nodes:
        node.connection.is_out = True
    await asyncio.sleep(rng.uniform(0.6, 1.5) * world.expiration_s)
    for node in world.nodes:
        node.connection.is_out = False
    await asyncio.sleep(world.config.handoff_timeout.total_seconds())
    world.expect(
        world.cost().stolen_count == cost.stolen_count, "an owner had no time after the outage"
    )
    world.behaviour.seconds_per_event = world.usual_seconds_per_event
    await world.settle("after an outage of a rebalance")


async def late_withdrawal(world: SmallWorld, rng: Random) -> None:
    """A processor is restarted, and the request that deletes its first record arrives late.

    Not one whose owner id another process had: a supervisor may start that one again meanwhile.
    """
    await two_processors(world)
    left = world.choose(rng)
    if world.had_rival(left):
        return
    left.connection.fate = _late("withdraw_member", rng.uniform(0.5, 6))
    world.leave(left)
    await world.until_gone(left)
    new = world.start(left.owner_id, is_supervised=False, deployment_id=world.deployment_id)
    until_s = world.now_s + PLANNED_S
    while not _is_recorded(world, new):
        world.expect(world.now_s < until_s, f"{new.owner_id} wrote no member record")
        await asyncio.sleep(0.1)
    await _stays_member(world, new, 6)
    await world.settle("restarted before its record was deleted", PLANNED_S + world.expiration_s)


def _is_recorded(world: SmallWorld, node: CheckedNode) -> bool:
    """Whether the record is this process's own: its former one may be deleted."""
    found = world.records().member_by_owner.get(node.owner_id)
    return found is not None and world.invariants.announcers.get(found.incarnation) is node.actor


async def _stays_member(world: SmallWorld, node: CheckedNode, for_s: float) -> None:
    """Check that the member record of a live processor does not vanish."""
    until_s = world.now_s + for_s
    while world.now_s < until_s and not node.is_over:
        world.expect(_is_recorded(world, node), f"the member record of {node.owner_id} vanished")
        await asyncio.sleep(0.1)


async def rest_for_long(world: SmallWorld, rng: Random) -> None:
    """Nothing changes for many expirations: every member stays one."""
    await two_processors(world)
    await asyncio.sleep(world.expiration_s * 9.9)
    world.shares()
    node = world.choose(rng)
    await _stays_member(world, node, 1.3 * world.expiration_s)
    world.expect(not world.invariants.moves, "partitions moved at rest")


LEAVING = (
    *(leave_served, leave_while_given, leave_while_draining, churn, outage_while_joining),
    *(late_withdrawal, rest_for_long),
)
COOPERATIVE = (leave_served, leave_while_given, leave_while_draining, outage_while_joining)
"""Situations in which partitions are handed over."""
NEVER_STATIC = (leave_served, leave_while_given, leave_while_draining, churn, late_withdrawal)
"""Situations in which a processor stops for good: with static membership it keeps its leases."""

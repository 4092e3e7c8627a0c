"""Faults of session leases: one member record keeps every lease of a processor alive."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from random import Random

from eventproc.models import MemberStatus
from eventproc.simulation.fleet import BEGIN
from eventproc.testing.faults import Fate
from tests.simulation.nodes import CheckedNode
from tests.simulation.small.world import BUSY_S, LOOK_S, SmallWorld, two_processors

FENCED_EXPIRATIONS = 1.5
"""Expirations after which a member that is not the first fences a silent one: after 1.25 it has the
duty, and it reads the records at least every half."""

LOST_S = 0.5


def _lost(fate: Fate) -> Fate:
    return replace(fate, is_carried_out=False, silence_s=LOST_S)


def _owning(world: SmallWorld, rng: Random) -> CheckedNode:
    """Choose a processor among those that own the most."""
    counts = world.owned_counts()
    most = max(counts[node.owner_id] for node in world.ours)
    return rng.choice([node for node in world.ours if counts[node.owner_id] == most])


async def blind(world: SmallWorld, rng: Random) -> None:
    """A processor renews its session, but reads nothing more, perhaps after one late listing.

    It does not see what is stolen from it, so it stops by its own clock, also in a long call.
    """
    if not world.is_session:
        return
    await two_processors(world)
    world.behaviour.seconds_per_event = 3 * world.expiration_s
    await asyncio.sleep(3)
    node = _owning(world, rng)
    late_s = rng.choice([0, rng.uniform(0.2, 0.38) * world.expiration_s])
    is_blind = late_s == 0

    def see(called: str, fate: Fate) -> Fate:
        nonlocal is_blind
        if called == "announce_member" or (
            called in {"list_members", "read_record"} and not is_blind
        ):
            return fate
        if is_blind or called != "list_ownership":
            return _lost(fate)
        is_blind = True
        return replace(fate, way_back_s=late_s)

    node.connection.fate = see
    if not is_blind or world.owned_counts()[node.owner_id] == 1:
        while not is_blind:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        (other, *_) = [other for other in world.ours if other is not node]
        for partition_id, owner_id in world.owner_by_partition().items():
            if owner_id == node.owner_id:
                world.operator.edit_ownership(partition_id, other.owner_id)
    else:
        world.join(2)
    world.behaviour.seconds_per_event = BUSY_S
    await asyncio.sleep(2 * world.expiration_s)


async def late_renewals(world: SmallWorld, rng: Random) -> None:
    """The answers to session renewals come late; then no renewal arrives any more."""
    if not world.is_session:
        return
    await two_processors(world)
    world.behaviour.seconds_per_event = rng.choice([BUSY_S, 3])
    node = _owning(world, rng)
    late_s = rng.uniform(0.3, 0.9) * world.expiration_s
    until_s = world.now_s + rng.uniform(0.35, 0.5) * world.expiration_s

    def late(called: str, fate: Fate) -> Fate:
        if called != "announce_member":
            return fate
        return replace(fate, way_back_s=late_s) if world.now_s < until_s else _lost(fate)

    node.connection.fate = late
    await asyncio.sleep(1.7 * world.expiration_s)


async def die_while_others_hang(world: SmallWorld, rng: Random) -> None:
    """A processor dies, and of the others only one still polls: that one fences it in time."""
    if not world.is_session:
        return
    await two_processors(world)
    if len(world.ours) < 3:
        world.join(3 - len(world.ours))
        await world.settle("three")
    dead = _owning(world, rng)
    _, *hanging = rng.sample([node for node in world.ours if node is not dead], len(world.ours) - 1)
    for node in hanging:
        node.connection.fate = lambda called, fate: (
            _lost(fate) if called.startswith("list") else fate
        )
    world.crash(dead)
    await asyncio.sleep(FENCED_EXPIRATIONS * world.expiration_s + 3 * world.interval_s)
    record = world.records().member_by_owner.get(dead.owner_id)
    world.expect(
        record is None or record.status is MemberStatus.DEAD,
        "a dead processor is not fenced while others hang",
    )


async def renew_at_last(world: SmallWorld, rng: Random) -> None:
    """A processor renews its session just when others are about to fence it.

    Either that renewal is refused, or it keeps everything.
    """
    if not world.is_session:
        return
    await two_processors(world)
    world.shares()
    node = _owning(world, rng)
    record = world.records().member_by_owner[node.owner_id]
    expires_s = (record.last_modified - BEGIN + timedelta(seconds=world.expiration_s)) / timedelta(
        seconds=world.store_rate
    )
    fenced_s = expires_s + rng.uniform(1, 3)  # The first attempts do not arrive.
    renewed_s = fenced_s + rng.uniform(0, 1.8)
    dead_count = len(world.invariants.dead_etags)
    node.connection.fate = lambda called, fate: (
        _lost(fate) if called == "announce_member" and world.now_s < renewed_s else fate
    )

    def fence(called: str, fate: Fate) -> Fate:
        if called != "announce_member" or world.now_s < expires_s - LOST_S:
            return fate
        return _lost(fate) if world.now_s < fenced_s else replace(fate, way_there_s=1.5)

    for other in world.ours:
        if other is not node:
            other.connection.fate = fence
    await asyncio.sleep(max(0, renewed_s - world.now_s) + 2 * world.interval_s)
    if len(world.invariants.dead_etags) == dead_count:
        world.expect(not world.invariants.moves, "a processor that renewed in time lost partitions")


SESSIONS = (blind, late_renewals, die_while_others_hang, renew_at_last)
"""Situations of groups with session leases only."""

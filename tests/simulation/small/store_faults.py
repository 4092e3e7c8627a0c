"""Faults of the store, and operators who change records by hand."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from random import Random

from eventproc import CheckpointPolicy, StoreUnavailableError
from eventproc.testing import StoreFaults
from eventproc.testing._faults import Fate
from tests.simulation.checked_store import CheckedStore
from tests.simulation.small.checkpoints import carry_out, draw_move
from tests.simulation.small.world import BUSY_S, PLANNED_S, SmallWorld, two_processors

NOTICED_POLLS = 1.5
"""Intervals within which an owner notices that its record was changed."""


async def outage(world: SmallWorld, rng: Random) -> None:
    """No processor reaches the store for some time: nothing moves afterwards."""
    await two_processors(world)
    world.shares()
    for node in world.nodes:
        node.connection.is_out = True
    await asyncio.sleep(rng.uniform(0.4, 2.5) * world.expiration_s)
    for node in world.nodes:
        later_s = rng.choice([0, 0.3])
        node.connection.is_out = False
        await asyncio.sleep(0 if node.is_gone else later_s)
    await world.settle("after an outage", PLANNED_S)
    world.expect(not world.invariants.moves, f"an outage moved {dict(world.invariants.moves)}")


async def cut_off(world: SmallWorld, rng: Random) -> None:
    """One busy processor does not reach the store."""
    await two_processors(world)
    world.behaviour.seconds_per_event = rng.choice([BUSY_S, 3])
    node = world.choose(rng)
    with node.connection.outage():
        await asyncio.sleep(0.8 * world.expiration_s)
        if rng.random() < 0.5:
            world.join()  # All poll often while it joins.
        await asyncio.sleep(rng.uniform(0.1, 1) * world.expiration_s)
    await asyncio.sleep(2 * world.interval_s)  # Only now others may take what it lost.


async def late_answers(world: SmallWorld, rng: Random) -> None:
    """Answers come late, at the edge of the lease; then no request arrives any more."""
    await two_processors(world)
    world.behaviour.seconds_per_event = rng.choice([BUSY_S, 3])
    node = world.choose(rng)
    late_s = rng.uniform(0.3, 0.95) * world.expiration_s
    until_s = world.now_s + rng.uniform(0.1, 0.5) * world.expiration_s

    def late(_: str, fate: Fate) -> Fate:
        is_carried_out = world.now_s < until_s
        return replace(fate, way_back_s=late_s, is_carried_out=is_carried_out, silence_s=1.0)

    node.connection.fate = late
    if rng.random() < 0.4:
        (node,) = world.join()
        node.connection.fate = late
    await asyncio.sleep(0.8 * world.expiration_s)
    if rng.random() < 0.5:
        world.join()  # All poll often while it joins.
    await asyncio.sleep(1.4 * world.expiration_s)


async def late_requests(world: SmallWorld, rng: Random) -> None:
    """Requests arrive late, perhaps after others took over; the next ones do not arrive."""
    await two_processors(world)
    world.behaviour.seconds_per_event = BUSY_S
    node = world.choose(rng)
    until_s = world.now_s + rng.uniform(0.5, 5)
    late_s = rng.uniform(0.3, 2) * world.expiration_s
    method = rng.choice(["update_checkpoint", "claim_ownership", "announce_member", ""])

    def late(called: str, fate: Fate) -> Fate:
        if world.now_s > until_s:
            return replace(fate, is_carried_out=False, silence_s=1.0)
        return replace(fate, way_there_s=late_s) if called == method or not method else fate

    node.connection.fate = late
    await asyncio.sleep(2.2 * world.expiration_s)


async def slow_reads(world: SmallWorld, rng: Random) -> None:
    """A processor joins whose reads are answered late, while others crash or are edited."""
    await two_processors(world)
    world.behaviour.seconds_per_event = BUSY_S
    method = rng.choice(["read_checkpoint", "list_ownership", "list_members"])
    late_s = rng.uniform(0.2, 1.6) * world.expiration_s
    (node,) = world.join()
    node.connection.fate = lambda called, fate: (
        replace(fate, way_back_s=late_s) if called == method else fate
    )
    await asyncio.sleep(rng.uniform(0.2, 1) * world.expiration_s)
    if rng.random() < 0.5:
        node.process.pause()
        await asyncio.sleep(rng.uniform(0.2, 1.4) * world.expiration_s)
        node.process.resume()
    await asyncio.sleep(late_s + world.interval_s)
    node.connection.fate = None
    await asyncio.sleep(late_s)  # Until then it waits for an answer, and notices no change.


async def lost_answers(world: SmallWorld, rng: Random) -> None:
    """Some answers of one processor are lost, though its requests are carried out.

    While another one with its owner id may have written them, it claims its partitions again.
    """
    await world.catch_up()
    cost = world.cost()
    node = world.choose(rng)
    if world.had_rival(node):
        return
    node.connection.faults = StoreFaults(answer_lost_rate=0.25, silence=timedelta(seconds=0.2))
    await asyncio.sleep(rng.uniform(0.5, 1.5) * world.expiration_s)
    node.connection.faults = world.usual_faults
    await world.settle("answers were lost")
    world.expect_free(cost, "answers were lost")


async def lost_while_leaving(world: SmallWorld, rng: Random) -> None:
    """A processor leaves, and a few of its requests or answers are lost: nothing is repeated.

    If the store is slow, too, ``shutdown_timeout`` may end before every request was repeated. The
    others then wait for ``handoff_timeout``, and steal what is left. So they do if another process
    with its owner id was refused just before: then it repeats no hand-over.
    """
    await two_processors(world)
    cost, shares = world.cost(), world.shares()
    left = world.choose(rng)
    method = rng.choice(["update_checkpoint", "claim_ownership", "withdraw_member"])
    count = rng.randint(1, 2)
    is_carried_out = rng.random() < 0.6

    def lost(called: str, fate: Fate) -> Fate:
        nonlocal count
        if called != method or count == 0 or not left.leaving.is_set():
            return fate
        count -= 1
        return replace(fate, is_carried_out=is_carried_out, is_answered=False, silence_s=0.2)

    left.connection.fate = lost
    world.leave(left)
    await world.until_gone(left)
    await world.settle("left although requests were lost")
    if world.is_quick and not world.had_rival(left):
        world.expect_free_leave(cost, shares, "left although requests were lost")
    names = set(world.owner_by_partition().values())
    world.expect(left.owner_id not in names, "a processor that left is still an owner")


async def slow_leave(world: SmallWorld, rng: Random) -> None:
    """A processor leaves while its requests are slow."""
    await two_processors(world)
    left = world.choose(rng)
    slow_s = rng.uniform(0.3, 0.8) * world.shutdown_s
    method = rng.choice(["announce_member", "claim_ownership", ""])
    left.connection.fate = lambda called, fate: (
        replace(fate, way_there_s=slow_s) if called == method or not method else fate
    )
    await asyncio.sleep(rng.uniform(0, 0.4) * world.expiration_s)
    world.leave(left)
    await world.until_gone(left)
    is_deleted = left.owner_id not in world.records().member_by_owner
    await asyncio.sleep(slow_s + world.interval_s)
    is_back = left.owner_id in world.records().member_by_owner
    world.expect(not (is_deleted and is_back), "a deleted member record is back")


async def stale_listings(world: SmallWorld, rng: Random) -> None:
    """Listings are a few seconds old."""
    world.set_faults(StoreFaults(stale_rate=0.5, stale_max=timedelta(seconds=rng.choice([1, 4]))))
    world.join()
    await asyncio.sleep(world.expiration_s * rng.uniform(0.5, 1.2))


# An operator.


async def edit_record(world: SmallWorld, rng: Random) -> None:
    """An operator deletes or edits an ownership record: its owner notices at its next poll."""
    await two_processors(world)
    world.behaviour.seconds_per_event = BUSY_S
    partition_id = rng.choice(list(world.hub.partition_ids()))
    others = [node.owner_id for node in world.ours]
    if rng.random() < 0.4:
        world.operator.delete_ownership(partition_id)
    else:
        world.operator.edit_ownership(partition_id, rng.choice([None, "stranger", *others]))
    await asyncio.sleep(world.interval_s * NOTICED_POLLS + 1)
    others_handle = world.invariants.handling_of_others(partition_id)
    world.expect(not others_handle, f"an edited record is not noticed: {others_handle}")
    await asyncio.sleep(0.5 * world.expiration_s)


async def delete_members(world: SmallWorld, rng: Random) -> None:
    """An operator deletes member records: that moves nothing, for the others remember owners.

    Those that own nothing seem to have left until they write their records again. Most placements
    give the others the same then; if not, partitions may move.
    """
    await world.catch_up()
    before = world.shares()
    names = sorted(world.records().member_by_owner)
    deleted = rng.sample(names, rng.randint(1, len(names)))
    for name in deleted:
        world.operator.delete_member(name)
    idle = [name for name in deleted if not before.counts.get(name)]
    may_move = idle and world.planned(before.owners, without=idle) != before.owners
    await asyncio.sleep(0.4 * world.expiration_s)
    if not may_move:
        world.expect(not world.invariants.moves, "a deleted member record moved partitions")
    await asyncio.sleep(2 * world.interval_s)  # A member without a record seems to be foreign.


async def move_position(world: SmallWorld, rng: Random) -> None:
    """An operator moves a checkpoint: its owner begins again from there."""
    await world.catch_up()
    move = draw_move(world, rng)
    if move is None:
        return
    partition_id = move.partition_id
    newest = world.hub.events(partition_id)[-1].sequence_number
    try:
        await carry_out(world, move, CheckedStore)
    except StoreUnavailableError:
        return
    world.invariants.moved_to[partition_id] = move.sequence_number
    following = move.sequence_number + 1
    count = world.handled_count(partition_id, following)
    is_quick = not (world.fails or world.usual_seconds_per_event)
    await asyncio.sleep(world.interval_s * NOTICED_POLLS + 1 + 2 * world.requests_s)
    is_paused = world.invariants.pauses.of(partition_id) is not None
    if is_quick and following <= newest and not is_paused:
        again = world.handled_count(partition_id, following) > count
        world.expect(again, f"{following} of {partition_id} is not delivered after the move")
    await asyncio.sleep(world.interval_s + 2)


async def rewrite_positions(world: SmallWorld, rng: Random) -> None:
    """Another program writes every checkpoint again, unchanged; owners notice at their next."""
    if world.config.checkpoint_policy == CheckpointPolicy.manual():
        return
    for partition_id in world.hub.partition_ids():
        await world.operator.rewrite_checkpoint(partition_id)
        await asyncio.sleep(rng.uniform(0, 0.3))
    for partition_id in world.hub.partition_ids():
        world.hub.publish(b"", partition_id=partition_id)
    await asyncio.sleep(8)


STORE_FAULTS = (
    *(outage, cut_off, late_answers, late_requests, slow_reads, lost_answers),
    *(lost_while_leaving, slow_leave, stale_listings),
    *(edit_record, delete_members, move_position, rewrite_positions),
)
NEVER_STATIC = (lost_while_leaving, slow_leave)

"""Situations in which one thing goes wrong; each names what it may cost."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from random import Random

from eventproc import CheckpointPolicy, StoreUnavailableError
from eventproc.admin import CheckpointMove, move_checkpoint
from eventproc.testing import StoreFaults
from eventproc.testing.faults import Fate
from tests.simulation.actor import Actor
from tests.simulation.checked_store import CheckedStore
from tests.simulation.faults import HAPPENINGS, Fault
from tests.simulation.small.planned import _two
from tests.simulation.small.world import PLANNED_S, SmallWorld

BUSY_S = 0.3
NOTICED_POLLS = 1.5
"""Intervals within which an owner notices that its record was changed."""

# The store.


async def outage(world: SmallWorld, rng: Random) -> None:
    """Nobody reaches the store for some time: nothing moves afterwards."""
    await _two(world)
    world.shares()
    for node in world.nodes:
        node.connection.is_out = True
    await asyncio.sleep(rng.uniform(0.4, 2.5) * world.expiration_s)
    for node in world.nodes:
        node.connection.is_out = False
        await asyncio.sleep(rng.choice([0, 0.3]))
    await world.settle("after an outage", PLANNED_S)
    world.expect(not world.invariants.moves, f"an outage moved {dict(world.invariants.moves)}")


async def cut_off(world: SmallWorld, rng: Random) -> None:
    """One busy processor does not reach the store."""
    await _two(world)
    world.behaviour.seconds_per_event = rng.choice([BUSY_S, 3])
    node = world.choose(rng)
    with node.connection.outage():
        await asyncio.sleep(0.8 * world.expiration_s)
        if rng.random() < 0.5:
            world.join()  # All poll often while it joins.
        await asyncio.sleep(rng.uniform(0.1, 1) * world.expiration_s)


async def late_answers(world: SmallWorld, rng: Random) -> None:
    """Answers come late, at the edge of the lease; then no request arrives any more."""
    await _two(world)
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
    await _two(world)
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
    await _two(world)
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


async def lost_answers(world: SmallWorld, rng: Random) -> None:
    """Some answers of one processor are lost, though its requests are carried out."""
    await world.catch_up()
    cost = world.cost()
    node = world.choose(rng)
    node.connection.faults = StoreFaults(answer_lost_rate=0.25, silence=timedelta(seconds=0.2))
    await asyncio.sleep(rng.uniform(0.5, 1.5) * world.expiration_s)
    node.connection.faults = world.usual_faults
    await world.settle("answers were lost")
    world.expect_free(cost, "answers were lost")


async def lost_while_leaving(world: SmallWorld, rng: Random) -> None:
    """A processor leaves, and a few of its requests or answers are lost: nothing is repeated."""
    await _two(world)
    cost = world.cost()
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
    world.expect_free(cost, "left although requests were lost")
    names = set(world.owner_by_partition().values())
    world.expect(left.owner_id not in names, "who left is still an owner")


async def slow_leave(world: SmallWorld, rng: Random) -> None:
    """A processor leaves while its requests are slow."""
    await _two(world)
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
    if not world.is_session:
        world.set_faults(
            StoreFaults(stale_rate=0.5, stale_max=timedelta(seconds=rng.choice([1, 4])))
        )
    world.join()
    await asyncio.sleep(world.expiration_s * rng.uniform(0.5, 1.2))


# An operator.


async def edit_record(world: SmallWorld, rng: Random) -> None:
    """An operator deletes or edits an ownership record: its owner notices at its next poll."""
    await _two(world)
    world.behaviour.seconds_per_event = BUSY_S
    partition_id = rng.choice(list(world.hub.partition_ids()))
    others = [node.owner_id for node in world.ours]
    if rng.random() < 0.4:
        world.operator.delete_ownership(partition_id)
    else:
        world.operator.edit_ownership(partition_id, rng.choice([None, "stranger", *others]))
    if not world.is_session:
        await asyncio.sleep(world.interval_s * NOTICED_POLLS + 1)
        others_handle = world.invariants.handling_of_others()
        world.expect(not others_handle, f"an edited record is not noticed: {others_handle}")
    await asyncio.sleep(0.5 * world.expiration_s)


async def delete_members(world: SmallWorld, rng: Random) -> None:
    """An operator deletes member records; with session leases that moves nothing."""
    await world.catch_up()
    world.shares()
    names = sorted(world.records().member_by_owner)
    for name in rng.sample(names, rng.randint(1, len(names))):
        world.operator.delete_member(name)
    await asyncio.sleep(0.4 * world.expiration_s)
    if world.is_session:
        world.expect(not world.invariants.moves, "a deleted member record moved partitions")
        await world.settle("members deleted")
    await asyncio.sleep(2 * world.interval_s)  # A member without a record seems to be foreign.


async def move_position(world: SmallWorld, rng: Random) -> None:
    """An operator moves a checkpoint: its owner begins again from there."""
    await world.catch_up()
    partition_id = rng.choice(list(world.hub.partition_ids()))
    events = world.hub.events(partition_id)
    if not events or partition_id not in world.records().checkpoint_by_partition:
        return
    event = rng.choice(events)
    store = CheckedStore(world.account, Actor("eventproc move"), world.invariants)
    world.invariants.moving(partition_id, event.sequence_number)
    try:
        await move_checkpoint(
            store,
            world.group,
            CheckpointMove(
                partition_id=partition_id,
                offset=event.offset,
                sequence_number=event.sequence_number,
            ),
            token="t",
            expiration=world.config.ownership_expiration,
        )
    except StoreUnavailableError:
        return
    world.invariants.moved_to[partition_id] = event.sequence_number
    following = event.sequence_number + 1
    count = world.handled_count(partition_id, following)
    is_quick = not (world.is_session or world.fails or world.usual_seconds_per_event)
    await asyncio.sleep(world.interval_s * NOTICED_POLLS + 1)
    if is_quick and following <= events[-1].sequence_number:
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


# Processes.


async def pause(world: SmallWorld, rng: Random) -> None:
    """A busy process is paused for about as long as its lease, or its machine sleeps."""
    await _two(world)
    world.behaviour.seconds_per_event = rng.choice([BUSY_S, 3])
    await asyncio.sleep(rng.uniform(1, 4))
    node = world.choose(rng)
    paused_s = rng.uniform(0.5, 1.8) * world.expiration_s
    node.process.pause()
    await asyncio.sleep(paused_s)
    if rng.random() < 0.5:
        node.process.resume()
    else:
        node.process.wake(paused_s)
    await asyncio.sleep(0.5 * world.expiration_s)


async def pause_while_changing(world: SmallWorld, rng: Random) -> None:
    """A process is paused at any step of a rebalance, and others take over."""
    await _two(world)
    world.behaviour.seconds_per_event = BUSY_S
    world.join()
    fault = Fault(
        at_s=0,
        kind="pause_at_step",
        which=rng.randrange(1 << 30),
        duration_s=rng.uniform(0.5, 1.6) * world.expiration_s,
    )
    await HAPPENINGS["pause_at_step"](world, fault)
    await asyncio.sleep(0.5 * world.expiration_s)


async def crash(world: SmallWorld, rng: Random) -> None:
    """A process dies; perhaps one joins when its records expire, perhaps it restarts."""
    await _two(world)
    node = world.choose(rng)
    world.crash(node)
    what = rng.choice(["join", "restart", "churn", ""])
    if what == "join":
        await asyncio.sleep(rng.uniform(0.6, 1.1) * world.expiration_s)
        world.join(rng.randint(1, 2))
    elif what == "restart":
        await asyncio.sleep(rng.uniform(0, 0.5) * world.expiration_s)
        world.start(node.owner_id, deployment_id=world.deployment_id)
        await world.settle("restarted after a crash", PLANNED_S + world.expiration_s / 2)
    elif what == "churn":
        await _churn(world, rng)
    await world.settle("after a crash", 1.5 * world.expiration_s + PLANNED_S)


async def _churn(world: SmallWorld, rng: Random) -> None:
    """Members change all the time, and partitions without an owner are served nevertheless."""
    until_s = world.now_s + 1.8 * world.expiration_s
    free_since_s = world.now_s
    while world.now_s < until_s:
        (passing,) = world.join()
        await asyncio.sleep(rng.uniform(0.5, 1))
        world.crash(passing)
        if len(world.live_records()) == len(world.hub.partition_ids()):
            free_since_s = world.now_s
        world.expect(
            world.now_s - free_since_s < 1.6 * world.expiration_s, "free partitions are not claimed"
        )


async def hang_on(world: SmallWorld, rng: Random) -> None:
    """A handler ignores cancellation: its partition is taken after ``handoff_timeout``."""
    await world.catch_up()
    handoff_s = world.config.handoff_timeout.total_seconds()
    world.behaviour.is_deaf = world.behaviour.was_deaf = True
    world.behaviour.seconds_per_event = 5 * handoff_s
    await asyncio.sleep(3.5)
    cost = world.cost()
    if rng.random() < 0.5:
        world.join()
        await asyncio.sleep(handoff_s + 3 * world.interval_s + 1)
        counts = list(world.owned_counts().values())
        world.expect(max(counts) - min(counts) <= 1, "a handler that hangs keeps its partition")
    elif len(world.ours) > 1:
        left = world.choose(rng)
        if rng.random() < 0.5:
            left.connection.fate = lambda called, fate: (
                replace(fate, is_carried_out=False, silence_s=1.0)
                if called == "claim_ownership" and not left.leaving.is_set()
                else fate
            )
            await asyncio.sleep(rng.uniform(0.5, 1) * world.expiration_s)
        world.leave(left)
        await world.until_gone(left)
        await asyncio.sleep(0.4)
        if left.connection.fate is None:
            world.expect(world.cost().stolen_count == cost.stolen_count, "a leaver is stolen from")
    world.behaviour.is_deaf = False
    await asyncio.sleep(world.behaviour.seconds_per_event)


async def long_calls(world: SmallWorld, rng: Random) -> None:
    """Calls take longer than a lease, which is renewed meanwhile: none is cancelled."""
    await world.catch_up()
    cost = world.cost()
    world.behaviour.seconds_per_event = 1.3 * world.expiration_s
    await asyncio.sleep(3 * world.expiration_s)
    world.behaviour.seconds_per_event = world.usual_seconds_per_event
    await asyncio.sleep(1.4 * world.expiration_s)
    world.expect_free(cost, "long calls")


async def leave_slowly(world: SmallWorld, rng: Random) -> None:
    """A processor leaves while a call takes longer than its budget."""
    await _two(world)
    world.behaviour.seconds_per_event = rng.uniform(1, 4) * world.shutdown_s
    await asyncio.sleep(3)
    left = world.choose(rng)
    world.leave(left)
    await world.until_gone(left)


# Two processes with one owner id.


async def twin(world: SmallWorld, rng: Random) -> None:
    """A second process starts with the owner id of a live one: it is refused, at no cost."""
    await _two(world)
    world.behaviour.seconds_per_event = BUSY_S
    world.shares()
    cost, node = world.cost(), world.choose(rng)
    second = world.start(node.owner_id, is_supervised=False, deployment_id=world.deployment_id)
    count = rng.choice([0, 1, 2])

    def lost(called: str, fate: Fate) -> Fate:
        nonlocal count
        if called != "announce_member" or count == 0:
            return fate
        count -= 1
        return replace(fate, is_answered=False, silence_s=rng.uniform(0.2, 2))

    second.connection.fate = lost
    if rng.random() < 0.4 and not world.is_session:  # A session is renewed meanwhile.
        slow_s = rng.uniform(0.5, 1.5) * world.interval_s
        second.connection.fate = lambda called, fate: (
            replace(fate, way_back_s=slow_s) if called.startswith("list") else fate
        )
    for _ in range(3):
        if not second.is_over:
            await asyncio.sleep(world.expiration_s)
    world.expect(
        second.is_over and not node.is_over, "the wrong one of two with one owner id ended"
    )
    world.expect_free(cost, "a second process with one owner id")
    world.expect(not world.invariants.moves, "a second process moved partitions")


async def replace_paused(world: SmallWorld, rng: Random) -> None:
    """Another process takes the owner id of a paused one, which ends when it is resumed."""
    await _two(world)
    world.behaviour.seconds_per_event = BUSY_S
    node = world.choose(rng)
    node.process.pause()
    await asyncio.sleep(rng.uniform(0.2, 0.7) * world.expiration_s)
    second = world.start(node.owner_id, is_supervised=False, deployment_id=world.deployment_id)
    for _ in range(4):
        if not second.served:
            await asyncio.sleep(0.5 * world.expiration_s)
    await asyncio.sleep(rng.uniform(0, 0.5) * world.expiration_s)
    if not second.served:
        return
    world.shares()
    node.process.resume()
    if rng.random() < 0.3:
        await asyncio.sleep(rng.uniform(0, 1))
        node.leaving.set()
    await asyncio.sleep(world.expiration_s)
    world.expect(node.is_over or node.is_gone, "a displaced process goes on")
    world.expect(not second.is_over, "a displaced process ended its successor")
    world.expect(not world.invariants.moves, "a displaced process moved partitions")


# Others.


async def foreign(world: SmallWorld, rng: Random) -> None:
    """A foreign client claims one partition and then nothing: others serve the rest."""
    await world.catch_up()
    partition_ids = list(world.hub.partition_ids())
    if len(partition_ids) < 2 or world.is_session:
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
    world.expect(len(live) == len(partition_ids), "a foreign client's share is read by nobody")
    served = {p for n in world.ours for p in n.served}
    mine = {p for p, owner_id in live.items() if owner_id == node.owner_id}
    world.expect(served | mine == set(partition_ids), "a foreign client's share is read by nobody")
    if not node.process.is_killed:
        world.leave(node)
        await world.until_gone(node)


async def break_links(world: SmallWorld, rng: Random) -> None:
    """Every link to the hub breaks: nothing is delivered again."""
    await world.catch_up()
    cost = world.cost()
    for _ in range(rng.randint(1, 3)):
        world.hub.break_links()
        await asyncio.sleep(rng.uniform(0.1, 2))
    await asyncio.sleep(2)
    world.expect_free(cost, "links broke")


DISTURBED = (
    *(outage, cut_off, late_answers, late_requests, slow_reads, lost_answers),
    *(lost_while_leaving, slow_leave, stale_listings),
    *(edit_record, delete_members, move_position, rewrite_positions),
    *(pause, pause_while_changing, crash, hang_on, long_calls, leave_slowly),
    *(twin, replace_paused, foreign, break_links),
)
NEVER_STATIC = (lost_while_leaving, slow_leave, hang_on, leave_slowly)

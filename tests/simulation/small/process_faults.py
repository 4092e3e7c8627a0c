"""Faults of processes, handlers and links."""

import asyncio
from dataclasses import replace
from random import Random

from tests.simulation.faults import FAULTS, Fault
from tests.simulation.small.world import BUSY_S, PLANNED_S, SmallWorld, two_processors


async def pause(world: SmallWorld, rng: Random) -> None:
    """A busy process is paused for about as long as its lease, or its machine sleeps."""
    await two_processors(world)
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
    await two_processors(world)
    world.behaviour.seconds_per_event = BUSY_S
    world.join()
    fault = Fault(
        at_s=0,
        kind="pause_at_step",
        which=rng.randrange(1 << 30),
        duration_s=rng.uniform(0.5, 1.6) * world.expiration_s,
    )
    await FAULTS["pause_at_step"](world, fault)
    await asyncio.sleep(0.5 * world.expiration_s)


async def crash(world: SmallWorld, rng: Random) -> None:
    """A process dies; perhaps one joins when its records expire, perhaps it restarts."""
    await two_processors(world)
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
    """Members change all the time, and partitions of dead owners are claimed nevertheless.

    With ``RELEASE``, what an owner released for a member that died meanwhile stays free, as it
    would be given to that member with a hand-over.
    """
    until_s = world.now_s + 1.7 * world.expiration_s
    free_since_s = world.now_s
    while world.now_s < until_s:
        (passing,) = world.join()
        await asyncio.sleep(rng.uniform(0.7, 1.3))
        world.crash(passing)
        if not world.orphaned():
            free_since_s = world.now_s
        world.expect(
            world.now_s - free_since_s < 1.6 * world.expiration_s, "free partitions are not claimed"
        )


async def hang_on(world: SmallWorld, rng: Random) -> None:
    """A handler ignores cancellation: its partition is taken after ``handoff_timeout``."""
    await world.catch_up()
    handoff_s = world.config.handoff_timeout.total_seconds()
    world.behaviour.ignores_cancellation = world.behaviour.ever_ignored_cancellation = True
    world.behaviour.seconds_per_event = 5 * handoff_s
    await asyncio.sleep(3.5)
    began_s = world.now_s
    if rng.random() < 0.5:
        world.join()
        await asyncio.sleep(handoff_s + 3 * world.interval_s + 1)
        world.expect(world.is_shared_as_planned, "a handler that hangs keeps its partition")
    elif len(world.ours) > 1:
        left = world.choose(rng)
        if rng.random() < 0.5:
            left.connection.fate = lambda called, fate: (
                replace(fate, is_carried_out=False, silence_s=1.0)
                if called == "claim_ownership" and not left.leaving.is_set()
                else fate
            )
            await asyncio.sleep(rng.uniform(0.5, 1) * world.expiration_s)
        overdue_s = world.now_s + handoff_s
        world.leave(left)
        await world.until_gone(left)
        await asyncio.sleep(0.4)
        if left.connection.fate is None:
            is_stolen = world.invariants.is_stolen_from(left.actor, began_s, until_s=overdue_s)
            world.expect(not is_stolen, "a leaver is stolen from")
    world.behaviour.ignores_cancellation = False
    await asyncio.sleep(world.behaviour.seconds_per_event)


async def long_calls(world: SmallWorld, rng: Random) -> None:
    """Calls take longer than a lease, which is renewed meanwhile: none is cancelled.

    But with ``failover_timeout`` a call that fails at its end stalls its partition: with the next
    attempt it completes nothing for twice as long. The partition then moves, and others after it.
    """
    await world.catch_up()
    cost, stalled_count = world.cost(), world.invariants.stalled_count
    world.behaviour.seconds_per_event = 1.3 * world.expiration_s
    await asyncio.sleep(3 * world.expiration_s)
    world.behaviour.seconds_per_event = world.usual_seconds_per_event
    await asyncio.sleep(1.4 * world.expiration_s)
    has_stalled = world.invariants.stalled_count > stalled_count
    if not (world.fails and has_stalled):
        world.expect_free(cost, "long calls")


async def leave_slowly(world: SmallWorld, rng: Random) -> None:
    """A processor leaves while a call takes longer than its budget."""
    await two_processors(world)
    world.behaviour.seconds_per_event = rng.uniform(1, 4) * world.shutdown_s
    await asyncio.sleep(3)
    left = world.choose(rng)
    world.leave(left)
    await world.until_gone(left)


async def break_links(world: SmallWorld, rng: Random) -> None:
    """Every link to the hub breaks: nothing is delivered again."""
    await world.catch_up()
    cost = world.cost()
    for _ in range(rng.randint(1, 3)):
        world.hub.break_links()
        await asyncio.sleep(rng.uniform(0.1, 2))
    await asyncio.sleep(2)
    world.expect_free(cost, "links broke")


PROCESS_FAULTS = (
    *(pause, pause_while_changing, crash, hang_on, long_calls, leave_slowly),
    break_links,
)
NEVER_STATIC = (hang_on, leave_slowly)

"""Situations of checkpoints: some requests fail, and other programs write them."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

from eventproc import CheckpointPolicy, StoreUnavailableError
from eventproc.admin import CheckpointMove, move_checkpoint
from eventproc.models import ClaimResult, ConsumerGroup, OwnershipClaim
from eventproc.testing._faults import Fate
from tests.simulation.actor import Actor
from tests.simulation.checked_store import CheckedStore
from tests.simulation.small.world import SmallWorld, two_processors

METHODS = (
    *("claim_ownership", "list_ownership", "list_members", "announce_member"),
    *("read_checkpoint", "update_checkpoint"),
)


async def partial_outage(world: SmallWorld, rng: Random) -> None:
    """Only some kinds of requests of one busy processor fail: mostly those that renew its leases.

    So it still writes checkpoints when another processor has its partitions.
    """
    await two_processors(world)
    world.behaviour.seconds_per_event = rng.choice([0.3, 1.5, 3])
    await asyncio.sleep(3)
    node = world.choose(rng)
    failing = set(METHODS[:4]) if rng.random() < 0.6 else {m for m in METHODS if rng.random() < 0.5}

    def fail(called: str, fate: Fate) -> Fate:
        is_lost = called in failing
        return replace(fate, is_carried_out=False, silence_s=1.0) if is_lost else fate

    node.connection.fate = fail
    await asyncio.sleep(rng.uniform(1.1, 2) * world.expiration_s)
    node.connection.fate = None
    world.behaviour.seconds_per_event = world.usual_seconds_per_event
    await asyncio.sleep(2 * world.interval_s)


async def leave_unanswered(world: SmallWorld, rng: Random) -> None:
    """A busy processor leaves, and the first attempts at its last checkpoints are lost."""
    await two_processors(world)
    world.behaviour.seconds_per_event = 0.3
    await asyncio.sleep(3)
    cost, shares = world.cost(), world.shares()
    left = world.choose(rng)
    count = rng.randint(1, 2)

    def lost(called: str, fate: Fate) -> Fate:
        nonlocal count
        if called != "update_checkpoint" or count == 0 or not left.leaving.is_set():
            return fate
        count -= 1
        return replace(fate, is_carried_out=False, silence_s=0.1)

    left.connection.fate = lost
    world.leave(left)
    await world.until_gone(left)
    world.behaviour.seconds_per_event = world.usual_seconds_per_event
    await world.settle("left although its last checkpoints were lost at first")
    world.expect_free_leave(cost, shares, "left although its last checkpoints were lost at first")


class DyingOperator(CheckedStore):
    """The store of an operator whose program ends before it notifies the owner of a partition."""

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Fail: the program has ended."""
        raise StoreUnavailableError("the operator's program ended")


def draw_move(world: SmallWorld, rng: Random) -> CheckpointMove | None:
    """Draw a partition that has a checkpoint, and one of its events to move that to."""
    partition_id = rng.choice(list(world.hub.partition_ids()))
    events = world.hub.events(partition_id)
    if not events or partition_id not in world.records().checkpoint_by_partition:
        return None
    event = rng.choice(events)
    return CheckpointMove(
        partition_id=partition_id, offset=event.offset, sequence_number=event.sequence_number
    )


async def carry_out(world: SmallWorld, move: CheckpointMove, kind: type[CheckedStore]) -> None:
    """Move a checkpoint, as an operator whose program has a store of this kind."""
    store = kind(world.account, Actor("eventproc move"), world.invariants)
    world.invariants.moving(move.partition_id, move.sequence_number)
    await move_checkpoint(
        store, world.group, move, token="t", expiration=world.config.ownership_expiration
    )


async def move_unnoticed(world: SmallWorld, rng: Random) -> None:
    """An operator's program ends after it moved a checkpoint: the owner notices at its next one."""
    await world.catch_up()
    if world.config.checkpoint_policy == CheckpointPolicy.manual():
        return
    move = draw_move(world, rng)
    if move is None:
        return
    with suppress(StoreUnavailableError):
        await carry_out(world, move, DyingOperator)
    partition_id = move.partition_id
    moved = world.records().checkpoint_by_partition[partition_id]
    if not (moved.writer or "").startswith("operator"):
        return
    world.invariants.moved_to[partition_id] = move.sequence_number
    world.hub.publish(b"", partition_id=partition_id)
    await asyncio.sleep(8)


async def move_on_elsewhere(world: SmallWorld, rng: Random) -> None:
    """Another program moves a checkpoint on: it does not go back, and its owner serves it still."""
    await world.catch_up()
    partition_id = rng.choice(list(world.hub.partition_ids()))
    if partition_id not in world.records().checkpoint_by_partition:
        return
    world.behaviour.seconds_per_event = 1.0
    for _ in range(5):
        world.hub.publish(b"", partition_id=partition_id)
    await asyncio.sleep(rng.uniform(0, 2))
    cost, newest = world.cost(), world.hub.events(partition_id)[-1]
    world.invariants.moving(partition_id, newest.sequence_number)
    await world.operator.rewrite_checkpoint(partition_id, newest)
    await asyncio.sleep(8)
    world.behaviour.seconds_per_event = world.usual_seconds_per_event
    await asyncio.sleep(3)
    if not world.fails:
        world.expect(
            world.cost().restart_count == cost.restart_count, "a pump was made again in vain"
        )


CHECKPOINTS = (partial_outage, leave_unanswered, move_unnoticed, move_on_elsewhere)
COOPERATIVE = ()
NEVER_STATIC = (leave_unanswered,)

"""The boundary of leases: short leases, frequent polls and handlers that are always busy.

Faults happen just before or after a renewal, for one owner after another, and the others poll every
second. The time between the end of trust and the expiration is short, so an error of a second or
two is detected.
"""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from random import Random

from eventproc import Backoff, CheckpointPolicy, EventProcessorConfig
from eventproc.testing import StoreFaults
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.invariants import Violation
from tests.simulation.nodes import CheckedNode
from tests.simulation.placements import STRATEGIES, with_placement
from tests.simulation.world import CLOCK_RATE_MAX, World

EXPIRATION_S = 15.0
HEALED_WITHIN_S = 200.0
TROUBLE_COUNT = 2
SLOW = StoreFaults(delay_max=timedelta(seconds=12))
FAST = StoreFaults(delay_max=timedelta(seconds=0.05))


async def _slow_then_cut_off(world: World, node: CheckedNode, rng: Random) -> None:
    """Its last renewals are slow; then the store is unreachable for it."""
    node.connection.faults = SLOW
    await asyncio.sleep(rng.uniform(0.5, 1.5) * EXPIRATION_S)
    await _cut_off(node)


async def _cut_off(node: CheckedNode) -> None:
    node.connection.is_out = True
    await asyncio.sleep(1.5 * EXPIRATION_S)
    node.connection.is_out = False


async def _unwritten(world: World, node: CheckedNode, rng: Random) -> None:
    """None of its requests is carried out, and none is answered."""
    node.connection.faults = StoreFaults(request_lost_rate=1, silence=timedelta(seconds=1))
    await asyncio.sleep(rng.uniform(0.5, 2) * EXPIRATION_S)


async def _unanswered(world: World, node: CheckedNode, rng: Random) -> None:
    """All its requests are carried out but some answers are lost: that must cost nothing.

    Raises:
        Violation: An event was handled twice.
    """
    before, counted = world.owner_by_partition(), world.invariants.duplicate_count
    node.connection.faults = StoreFaults(answer_lost_rate=0.25, silence=timedelta(seconds=0.2))
    await asyncio.sleep(rng.uniform(0.5, 2) * EXPIRATION_S)
    node.connection.faults = FAST
    await asyncio.sleep(EXPIRATION_S)
    lost = world.invariants.duplicate_count - counted
    if lost or world.owner_by_partition() != before:
        raise Violation(f"answers were lost: {lost} events came twice, {world.describe()}")


async def _busy_and_cut_off(world: World, node: CheckedNode, _: Random) -> None:
    """Its lease expires during a call of its handler."""
    usual_s, world.behaviour.seconds_per_event = world.behaviour.seconds_per_event, 4
    await asyncio.sleep(5)
    await _cut_off(node)
    world.behaviour.seconds_per_event = usual_s


async def _long_calls(world: World, _node: CheckedNode, _: Random) -> None:
    """Calls take longer than a lease, which is renewed meanwhile.

    Raises:
        Violation: No call completed.
    """
    usual_s, world.behaviour.seconds_per_event = world.behaviour.seconds_per_event, 20
    before = {p: sum(counts.values()) for p, counts in world.invariants.handled.items()}
    await asyncio.sleep(4 * 20)
    world.behaviour.seconds_per_event = usual_s
    after = {p: sum(counts.values()) for p, counts in world.invariants.handled.items()}
    if any(after[p] == count for p, count in before.items()):
        raise Violation(f"no call came to its end: {before} and {after}")


def _known(kind: str) -> Callable[[World, CheckedNode, Random], Coroutine[object, object, None]]:
    """A fault that other suites have, too."""

    async def happen(world: World, node: CheckedNode, rng: Random) -> None:
        duration_s = rng.uniform(0.3, 2) * EXPIRATION_S
        which = rng.randrange(1 << 30)
        await FAULTS[kind](world, Fault(at_s=0, kind=kind, which=which, duration_s=duration_s))

    return happen


OFTEN = (_slow_then_cut_off, _unwritten, _busy_and_cut_off)
TROUBLES = (
    *OFTEN,
    _long_calls,
    *map(_known, ("pause", "sleep", "pause_at_step", "replace_paused", "twin", "restart")),
    *map(_known, ("edit_ownership", "delete_ownership", "join", "leave", "crash", "operator")),
)


async def live_at_the_edge(seed: int) -> World:
    """Inject one fault after another, each when the group has recovered.

    Raises:
        Violation: An invariant was violated.
    """
    rng = Random(f"edges/{seed}")
    config = EventProcessorConfig(
        uses_store_thread=False,
        load_balancing_strategy=rng.choice(STRATEGIES),
        load_balancing_interval=timedelta(seconds=1),
        ownership_expiration=timedelta(seconds=EXPIRATION_S),
        handoff_timeout=timedelta(seconds=5),
        shutdown_timeout=timedelta(seconds=5),
        handler_backoff=Backoff(maximum=timedelta(seconds=1)),
        checkpoint_policy=rng.choice(
            [CheckpointPolicy(max_events=1), CheckpointPolicy(interval=timedelta(seconds=5))]
        ),
    )
    world = World(
        seed,
        partition_count=rng.randint(1, 4),
        config=with_placement(config, seed),
        publish_every_s=0.7,
        clock_rate_max=rng.choice([0, CLOCK_RATE_MAX]),
    )
    world.set_faults(FAST)
    world.behaviour.seconds_per_event = rng.choice([0.05, 0.3])
    with world.played():
        for number in range(rng.randint(2, 3)):
            world.start(f"n{number}")
        # First, because after two had one owner id, a lost answer hides which of them wrote.
        troubles = [_unanswered, rng.choice(OFTEN), *rng.choices(TROUBLES, k=TROUBLE_COUNT)]
        for trouble in troubles:
            await world.until("is_balanced", HEALED_WITHIN_S)
            await asyncio.sleep(rng.uniform(0, EXPIRATION_S))
            await trouble(world, rng.choice(world.there), rng)
            world.set_faults(FAST)
            if not world.there:
                world.start(f"n{len(world.nodes)}")
            await asyncio.sleep(EXPIRATION_S)
        await world.until("is_balanced", HEALED_WITHIN_S)
        await world.end()
    return world

"""A scenario: the faults of a world and their times, drawn from one seed before it begins.

A *safety* scenario has faults to its end. In a *liveness* scenario they end, except those that may
last: clocks that run fast or slow, a slow connection, a store that is sometimes busy, processors
that are dead or cut off for ever, an event that every handler fails on. Then the group must become
balanced and stay so.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from random import Random

from eventproc import (
    Backoff,
    CheckpointPolicy,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    LoadBalancingStrategy,
)
from eventproc.testing import StoreFaults
from tests.simulation.azure.systems import SYSTEMS
from tests.simulation.faults import FAULTS, NOISES, Fault
from tests.simulation.placements import STRATEGIES, with_placement
from tests.simulation.troubles import TROUBLES
from tests.simulation.world import CLOCK_RATE_MAX, World

HEALED_WITHIN_S = 400.0
QUIET_INTERVALS = 100
NOTICED_AFTER = 1.5
"""Expirations until every processor knows that one is dead, with clock rates and a poll."""

HANG_FACTOR = 1.2
"""The watchdog looks eight times in a stall time-out; a cancelled call has its budget, too."""

DEATHS_UNCOUNTED = 1
"""More than ``deliveries_max`` processes may die of an event: two have it among others, and that
counts as one delivery."""

CALM = StoreFaults()
SLOW_LINE = StoreFaults(delay_max=timedelta(seconds=0.3))
"""Time without a fault."""

LASTING = (
    SLOW_LINE,
    StoreFaults(delay_max=timedelta(seconds=1)),
    StoreFaults(delay_max=timedelta(seconds=0.3), throttle_rate=0.05),
)
"""Faults of a store that may last for ever."""


FOREIGN = (
    "azure-python-greedy",
    "azure-python-balanced",
    "azure-dotnet-greedy",
    "azure-dotnet-balanced",
)


TROUBLE_NEVER_WITH = {"slow", "ignore_cancellation", "delete_checkpoint", "operator", "poison"}
"""Faults that are not combined with troubles: calls that are slow without a stall, counts that
begin anew, and an event that is retried for ever: a stall of one owner after another."""


class Mode(Enum):
    """What a scenario checks."""

    SAFETY = "safety"
    LIVENESS = "liveness"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A world's settings and faults."""

    seed: int | str
    """Random generator for what is drawn while the scenario runs."""

    mode: Mode
    partition_count: int
    node_count: int
    config: EventProcessorConfig
    checkpoint_rate: float = 0.0
    publish_every_s: float = 1.0
    clock_rate_max: float = 0.0
    noise: StoreFaults = CALM
    """The store's faults until the other faults end."""

    lasting: StoreFaults = SLOW_LINE
    """The store's faults from then on."""

    foreign: tuple[str, ...] = ()
    """Foreign members in the group, by system name."""

    faults: tuple[Fault, ...] = ()


def draw(seed: int, mode: Mode) -> Scenario:
    """Draw a scenario; the same for the same seed."""
    rng = Random(f"{mode.value}/{seed}")
    config = _draw_config(rng)
    until_s = rng.choice([60, 120, 240])
    count = rng.randint(1, 10)
    kinds = rng.sample(list(FAULTS), rng.randint(1, 5))
    foreign = rng.choices(FOREIGN, k=rng.choice([0, 0, 0, 0, 1, 2]))
    faults = [_draw_fault(rng, kinds, config, until_s) for _ in range(count)]
    return Scenario(
        seed=seed,
        mode=mode,
        partition_count=rng.randint(1, 10),
        node_count=rng.randint(1, 4),
        config=with_placement(config, seed, has_foreign=bool(foreign)),
        checkpoint_rate=rng.choice([0, 0, 0.2]),
        publish_every_s=rng.choice([0.7, 2, 6]),
        clock_rate_max=rng.choice([0, CLOCK_RATE_MAX]),
        noise=rng.choice([StoreFaults(), *NOISES]),
        # Azure's .NET processor tries twice to renew a record in time, ours many times.
        lasting=rng.choice(LASTING[:1] if foreign else LASTING),
        foreign=tuple(foreign),
        faults=tuple(sorted(faults, key=lambda fault: fault.at_s)),
    )


def _draw_config(rng: Random) -> EventProcessorConfig:
    interval_s = rng.choice([5, 10])
    return EventProcessorConfig(
        load_balancing_strategy=rng.choice(STRATEGIES),
        load_balancing_interval=timedelta(seconds=interval_s),
        ownership_expiration=timedelta(seconds=interval_s * rng.choice([3, 6, 12])),
        handoff_timeout=timedelta(seconds=rng.choice([5, 30])),
        shutdown_timeout=timedelta(seconds=rng.choice([5, 30])),
        checkpoint_policy=rng.choice(
            [
                CheckpointPolicy(),
                CheckpointPolicy(max_events=3),
                CheckpointPolicy(max_events=None, interval=timedelta(seconds=20)),
                CheckpointPolicy.manual(),
            ]
        ),
        handler_backoff=Backoff(maximum=timedelta(seconds=5)),
        receiver_backoff=Backoff(maximum=timedelta(seconds=10)),
        batch_size_max=rng.choice([1, 7, 300]),
        static_membership=rng.random() < 0.1,
        standby_timeout=timedelta(seconds=100),
        uses_store_thread=False,
    )


def _draw_fault(
    rng: Random, kinds: list[str], config: EventProcessorConfig, until_s: float
) -> Fault:
    expiration_s = config.ownership_expiration.total_seconds()
    return Fault(
        at_s=rng.uniform(0, until_s),
        kind=rng.choice(kinds),
        which=rng.randrange(1 << 30),
        duration_s=rng.choice([0.5, 3, 0.4 * expiration_s, 1.2 * expiration_s, 2.5 * expiration_s]),
    )


def world_of(scenario: Scenario, make: type[World] = World) -> World:
    """Make the world that a scenario begins in."""
    world = make(
        scenario.seed,
        partition_count=scenario.partition_count,
        config=scenario.config,
        publish_every_s=scenario.publish_every_s,
        clock_rate_max=scenario.clock_rate_max,
    )
    world.behaviour.checkpoint_rate = scenario.checkpoint_rate
    if (failover_timeout := scenario.config.failover_timeout) is not None:
        hang_max = failover_timeout * HANG_FACTOR + scenario.config.shutdown_timeout
        world.invariants.hang_max_s = hang_max.total_seconds()
    world.invariants.deaths_max = (
        scenario.config.failure_policy.deliveries_max or 0
    ) + DEATHS_UNCOUNTED
    world.set_faults(scenario.noise)
    return world


async def play_scenario(scenario: Scenario, make: type[World] = World) -> World:
    """Play a scenario, and check its mode's properties.

    Raises:
        Violation: An invariant was violated.
    """
    world = world_of(scenario, make)
    with world.played():
        await _happen(scenario, world)
        if scenario.mode is Mode.LIVENESS:
            await _settle(scenario, world)
        await world.end()
    return world


async def _happen(scenario: Scenario, world: World) -> None:
    """Start the processors, and inject the faults."""
    for number in range(scenario.node_count):
        world.start(f"n{number}")
    for number, system in enumerate(scenario.foreign):
        world.start_foreign(f"f{number}", SYSTEMS[system])
    under_way: list[asyncio.Task[None]] = []
    for fault in scenario.faults:
        await asyncio.sleep(max(0.0, fault.at_s - world.now_s))
        world.invariants.note(fault.kind, str(fault.which))
        script_event = FAULTS.get(fault.kind) or TROUBLES[fault.kind]
        under_way.append(asyncio.create_task(script_event(world, fault)))
    if scenario.mode is Mode.SAFETY:
        await asyncio.sleep(scenario.config.ownership_expiration.total_seconds())
        for task in under_way:
            task.cancel()
    if under_way:
        await asyncio.wait(under_way)
    for task in under_way:
        if not task.cancelled():
            task.result()


async def _settle(scenario: Scenario, world: World) -> None:
    """End all faults but those that last; wait until the group is balanced and at rest."""
    world.set_faults(scenario.lasting)
    world.calm_since_s = world.now_s
    if not any(not node.actor.is_foreign for node in world.there):
        world.start("last")  # A group of foreign members only has no guarantee to balance.
    # A processor that died a moment ago counts as an owner until its records expire.
    await asyncio.sleep(scenario.config.ownership_expiration.total_seconds() * NOTICED_AFTER)
    if not world.there:  # With stale listings, two processors with one owner id may both end.
        world.start("last")
    await world.until("is_at_rest", HEALED_WITHIN_S)
    world.stop_publishing()
    await world.until("is_all_handled", HEALED_WITHIN_S)
    if scenario.config.failover_timeout is not None:
        # A call that hung moved its partition from owner to owner; the group balances again.
        await world.until("is_at_rest", HEALED_WITHIN_S)
    await world.rest(QUIET_INTERVALS)


def of_strategy(scenario: Scenario, strategy: LoadBalancingStrategy) -> Scenario:
    """Return the same scenario with another strategy."""
    return replace(scenario, config=replace(scenario.config, load_balancing_strategy=strategy))


def with_troubles(scenario: Scenario, seed: int) -> Scenario:
    """Return the same scenario with events that hang or kill, and a policy for them."""
    rng = Random(f"troubles/{seed}")
    failover_timeout = timedelta(seconds=rng.choice([10, 30]))
    config = replace(
        scenario.config,
        failover_timeout=failover_timeout,
        failure_policy=FailurePolicy(
            action=FailureAction.DEAD_LETTER, deliveries_max=rng.choice([3, 5])
        ),
    )
    kinds = list(TROUBLES)
    troubles = [_draw_fault(rng, kinds, config, 100) for _ in range(rng.randint(1, 4))]
    others = [fault for fault in scenario.faults if fault.kind not in TROUBLE_NEVER_WITH]
    return replace(
        scenario,
        config=config,
        foreign=(),
        faults=tuple(sorted([*others, *troubles], key=lambda fault: fault.at_s)),
    )

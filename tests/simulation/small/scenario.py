"""Small worlds: few processors and partitions, one situation after another, drawn from a seed.

Each seed leaves out a random half of the situations and of the conditions (swarm testing: a fault
that happens all the time hides what happens only without it). A failed seed is shrunk to the fewest
situations and conditions with which it still fails.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from string import ascii_lowercase
from typing import Any, Final

from eventproc import (
    Backoff,
    CheckpointPolicy,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    LoadBalancingStrategy,
)
from eventproc._core.placement.even import Even
from eventproc._core.placement.placement import Placement
from eventproc.testing import StoreFaults
from eventproc.testing._processes import run_processes
from tests.simulation.invariants import Violation
from tests.simulation.lanes import key_selector
from tests.simulation.placements import STRATEGIES, draw_placement
from tests.simulation.scenario import DEATHS_UNCOUNTED
from tests.simulation.small import (
    checkpoints,
    foreign,
    lease_faults,
    leaving,
    pauses,
    planned,
    process_faults,
    shared_ids,
    store_faults,
    suspects,
)
from tests.simulation.small.world import SmallLanesWorld, SmallWorld
from tests.simulation.world import CLOCK_RATE_MAX

EXPIRATION_S: Final = 12.0
STEPS_MAX: Final = 3
HEALED_WITHIN_S: Final = 90.0
STORED_WITHIN_S: Final = 45.0
RESUMED_WITHIN_S: Final = 180.0
"""So long may take what waited during pauses."""
DELIVERIES_MAX: Final = 3
STALL_S: Final = 24.0
"""More than any call with one event takes that comes to its end."""

SITUATIONS: Final[dict[str, Callable[[SmallWorld, Random], Coroutine[Any, Any, None]]]] = {
    function.__name__: function
    for function in (
        *planned.PLANNED,
        *store_faults.STORE_FAULTS,
        *process_faults.PROCESS_FAULTS,
        *shared_ids.SHARED_IDS,
        *lease_faults.LEASE_FAULTS,
        *leaving.LEAVING,
        *checkpoints.CHECKPOINTS,
        *suspects.SUSPECTS,
        *foreign.FOREIGN,
    )
}
NEVER_STATIC: Final = {
    function.__name__
    for functions in (
        *(planned.NEVER_STATIC, store_faults.NEVER_STATIC, process_faults.NEVER_STATIC),
        *(leaving.NEVER_STATIC, checkpoints.NEVER_STATIC, suspects.NEVER_STATIC),
        foreign.NEVER_STATIC,
    )
    for function in functions
}
COOPERATIVE: Final = {function.__name__ for function in leaving.COOPERATIVE}
FOREIGN: Final = {function.__name__ for function in foreign.FOREIGN}
NEVER_PAUSED: Final = FOREIGN | {function.__name__ for function in suspects.NEVER_PAUSED}
"""Foreign members take no notice of a pause; others wait for a certain event."""
STANDBY: Final = {function.__name__ for function in planned.STANDBY}
NEVER_COOPERATIVE: Final = {function.__name__ for function in suspects.NEVER_COOPERATIVE}

CONDITIONS: Final = (
    *("slow store", "clocks", "busy", "own checkpoints", "early receivers", "failing"),
    *("lanes", "static", "manual", "deliveries", "stall"),
)
CONDITION_RATE: Final = 0.25
PAUSED_RATE: Final = 0.3
"""Drawn apart from the other conditions, so that the worlds without pauses stay as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallScenario:
    """What happens in a small world."""

    seed: int
    partition_count: int
    processor_count: int
    strategy: LoadBalancingStrategy
    placement: Placement = field(default_factory=Even)
    conditions: tuple[str, ...]
    steps: tuple[tuple[int, str], ...]
    """The situations, each with the number from which its details are drawn."""

    def __str__(self) -> str:
        conditions = ", ".join(self.conditions) or "nothing else"
        steps = ", then ".join(name for _, name in self.steps) or "nothing"
        return (
            f"{self.partition_count} partitions, {self.processor_count} processors, "
            f"{self.strategy.value}, {self.placement.name}; with {conditions}; situations: {steps}"
        )


def draw(seed: int) -> SmallScenario:
    """Draw a scenario; the same for the same seed."""
    rng = Random(f"small/{seed}")
    conditions = [c for c in CONDITIONS if rng.random() < CONDITION_RATE]
    strategy = rng.choice([*STRATEGIES, LoadBalancingStrategy.COOPERATIVE])
    enabled = [name for name in SITUATIONS if rng.random() < 0.5]
    names = rng.choices(enabled, k=rng.randint(1, STEPS_MAX))
    if not COOPERATIVE.isdisjoint(names):
        strategy = LoadBalancingStrategy.COOPERATIVE
    if strategy is LoadBalancingStrategy.COOPERATIVE:
        names = [name for name in names if name not in NEVER_COOPERATIVE]
    conditions += [c for c in sorted(_needed(names)) if c not in conditions]
    if "static" in conditions:
        names = [name for name in names if name not in NEVER_STATIC]
    placement, releases = draw_placement(f"small/{seed}")
    if releases and strategy is LoadBalancingStrategy.COOPERATIVE and COOPERATIVE.isdisjoint(names):
        strategy = LoadBalancingStrategy.RELEASE
    if not placement.admits_standby:
        names = [name for name in names if name not in STANDBY]
    if not placement.admits_foreign:
        names = [name for name in names if name not in FOREIGN]
    if NEVER_PAUSED.isdisjoint(names) and Random(f"small pauses/{seed}").random() < PAUSED_RATE:
        conditions.append("paused")
    return SmallScenario(
        seed=seed,
        placement=placement,
        partition_count=rng.choice([1, 2, 3, 4, 6]),
        processor_count=rng.randint(1, 3),
        strategy=strategy,
        conditions=tuple(conditions),
        steps=tuple(enumerate(names)),
    )


def _needed(names: Iterable[str]) -> set[str]:
    """Return the conditions that these situations make no sense without."""
    return {condition for name in names for condition in suspects.NEEDS.get(name, ())}


def _config(scenario: SmallScenario) -> EventProcessorConfig:
    rng = Random(f"small config/{scenario.seed}")
    has = scenario.conditions.__contains__
    policies = [
        CheckpointPolicy(max_events=1),
        CheckpointPolicy(interval=timedelta(seconds=1)),
        CheckpointPolicy(),
    ]
    policy = CheckpointPolicy.manual() if has("manual") else rng.choice(policies)
    lanes: dict[str, Any] = {"key_concurrency": 3, "key_selector": key_selector}
    return EventProcessorConfig(
        uses_store_thread=False,
        load_balancing_strategy=scenario.strategy,
        placement=scenario.placement,
        load_balancing_interval=timedelta(seconds=2),
        ownership_expiration=timedelta(seconds=EXPIRATION_S),
        handoff_timeout=timedelta(seconds=4),
        shutdown_timeout=timedelta(seconds=3.5),
        standby_timeout=timedelta(seconds=20),
        handler_backoff=Backoff(maximum=timedelta(seconds=1)),
        receiver_backoff=Backoff(maximum=timedelta(seconds=1)),
        checkpoint_policy=policy,
        batch_size_max=1 if has("stall") else rng.choice([1, 3, 300]),
        failure_policy=FailurePolicy(
            action=FailureAction.DEAD_LETTER,
            deliveries_max=DELIVERIES_MAX if has("deliveries") else None,
        ),
        stall_timeout=None,
        failover_timeout=timedelta(seconds=STALL_S) if has("stall") else None,
        static_membership=has("static"),
        **(lanes if has("lanes") else {}),
    )


def _world(scenario: SmallScenario) -> SmallWorld:
    has = scenario.conditions.__contains__
    rng = Random(f"small world/{scenario.seed}")
    make = SmallLanesWorld if has("lanes") else SmallWorld
    world = make(
        f"small/{scenario.seed}",
        partition_count=scenario.partition_count,
        config=_config(scenario),
        publish_every_s=rng.choice([0.9, 1.7, 3]),
        clock_rate_max=CLOCK_RATE_MAX if has("clocks") else 0,
    )
    delay_s = rng.choice([0.2, 0.4]) if has("slow store") else 0.03
    world.usual_faults = StoreFaults(delay_max=timedelta(seconds=delay_s))
    world.usual_seconds_per_event = 0.3 if has("busy") else 0.0
    world.invariants.is_quick = not has("slow store")
    world.invariants.deaths_max = DELIVERIES_MAX + DEATHS_UNCOUNTED
    world.letter = rng.choice(ascii_lowercase)
    world.is_early = has("early receivers")
    world.fails = has("failing")
    world.behaviour.failure_rate = 0.1 if has("failing") else 0.0
    world.behaviour.checkpoint_rate = 0.3 if has("own checkpoints") else 0.0
    world.heal()
    return world


async def play_scenario(
    scenario: SmallScenario, watch: Callable[[SmallWorld], object] = lambda _: None
) -> SmallWorld:
    """Play a scenario; *watch* gets the world before anything happens in it.

    Raises:
        Violation: An invariant was violated, or a situation cost more than it has to.
    """
    world = _world(scenario)
    watch(world)
    operator = pauses.PausingOperator(world, Random(f"small operator/{scenario.seed}"))
    is_paused = "paused" in scenario.conditions
    with world.played():
        world.join(scenario.processor_count)
        for number, name in scenario.steps:
            await world.settle("healed", HEALED_WITHIN_S)
            await operator.perhaps_resume()
            world.invariants.note(f"--- {name}", "")
            pausing = asyncio.create_task(operator.pause()) if is_paused else None
            await SITUATIONS[name](world, Random(f"{scenario.seed}/{number}/{name}"))
            if pausing is not None:
                await pausing
            world.heal()
            if not world.ours:
                world.join()
            world.check()
        world.invariants.note("--- end", "")
        await world.settle("healed", HEALED_WITHIN_S)
        await operator.resume_all()
        await _finish(world, RESUMED_WITHIN_S if is_paused else STORED_WITHIN_S)
    return world


async def _finish(world: SmallWorld, handled_within_s: float) -> None:
    """The group balances, handles and stores everything, and leaves nothing behind."""
    world.stop_publishing()
    await world.until("is_all_handled", handled_within_s)
    if world.config.checkpoint_policy != CheckpointPolicy.manual():
        await world.until("is_all_stored", STORED_WITHIN_S)
    await world.settle("before the rest")  # What the last fault led to may have come only now.
    await world.rest(3)
    await world.end()


def play(seed: int) -> Coroutine[Any, Any, SmallWorld]:
    """Play the scenario of a seed."""
    return play_scenario(draw(seed))


def shrunk(scenario: SmallScenario) -> SmallScenario:
    """Return the scenario with the fewest situations and conditions that still fails."""
    while True:
        for simpler in _simpler(scenario):
            if failure_of(simpler) is not None:
                scenario = simpler
                break
        else:
            return scenario


def _simpler(scenario: SmallScenario) -> Iterator[SmallScenario]:
    for steps in _without_one(scenario.steps):
        yield replace(scenario, steps=steps)
    if scenario.placement != Even():
        yield replace(scenario, placement=Even())
    needed = _needed(name for _, name in scenario.steps)
    for conditions in _without_one(scenario.conditions):
        if needed <= set(conditions):
            yield replace(scenario, conditions=conditions)
    if scenario.processor_count > 1:
        yield replace(scenario, processor_count=scenario.processor_count - 1)
    if scenario.partition_count > 1:
        yield replace(scenario, partition_count=scenario.partition_count - 1)


def _without_one(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for number in range(len(items)):
        yield items[:number] + items[number + 1 :]


def failure_of(scenario: SmallScenario) -> str | None:
    """Play a scenario; return what was violated, or ``None``."""
    try:
        run_processes(play_scenario(scenario))
    except Exception as error:  # noqa: BLE001 - any error is a failure
        return str(error) if isinstance(error, Violation) else f"{type(error).__name__}: {error}"
    return None


def report(scenario: SmallScenario) -> str:
    """Play a scenario; describe it, what happened in it, and what was violated."""
    worlds: list[SmallWorld] = []
    try:
        run_processes(play_scenario(scenario, worlds.append))
    except Exception as error:  # noqa: BLE001 - it is reported
        violation = f"{type(error).__name__}: {error}"
    else:
        violation = "every invariant held"
    history = worlds[0].invariants.history if worlds else []
    lines = [
        f"{at_s:10.3f}  {subject + ': ' if subject else ''}{what}"
        for at_s, what, subject in history
    ]
    return "\n".join([f"small {scenario.seed}: {scenario}", *lines, violation])

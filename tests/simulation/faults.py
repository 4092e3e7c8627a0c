"""What goes wrong in a world, and when: drawn from one seed before it begins."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from eventproc import Backoff, CheckpointPolicy, EventProcessorConfig, LoadBalancingStrategy
from eventproc.testing import StoreFaults
from tests.simulation.world import Node, World

SLOW_LINE = StoreFaults(delay_max=timedelta(seconds=0.3))
"""No fault, but time in which things can happen."""

NOISES = (
    SLOW_LINE,
    StoreFaults(delay_max=timedelta(seconds=3)),
    StoreFaults(answer_lost_rate=0.2, silence=timedelta(seconds=1)),
    StoreFaults(request_lost_rate=0.2, silence=timedelta(seconds=4)),
    StoreFaults(throttle_rate=0.3),
    StoreFaults(
        delay_max=timedelta(seconds=1),
        throttle_rate=0.1,
        request_lost_rate=0.1,
        answer_lost_rate=0.1,
        silence=timedelta(seconds=2),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong."""

    at_s: float
    kind: str
    which: int
    """Which node or partition, modulo how many there are."""

    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A world and everything that goes wrong in it."""

    partition_count: int
    node_count: int
    checkpoint_rate: float
    config: EventProcessorConfig
    noise: StoreFaults
    """How the store behaves all the time, until everything is well."""

    faults: tuple[Fault, ...]


def draw(seed: int, strategy: LoadBalancingStrategy) -> Story:
    """Draw a story; the same for the same seed."""
    rng = Random(f"story/{seed}")
    expiration_s = rng.choice([30, 60, 120])
    faults = [
        Fault(
            at_s=rng.uniform(0, 200),
            kind=rng.choice(KINDS),
            which=rng.randrange(1000),
            duration_s=rng.choice([0.5, 3, 0.4, 1.2, 2.5]) * rng.choice([1, expiration_s]),
        )
        for _ in range(rng.randint(1, 12))
    ]
    return Story(
        partition_count=rng.randint(1, 12),
        node_count=rng.randint(1, 4),
        checkpoint_rate=rng.choice([0, 0, 0.2]),
        config=EventProcessorConfig(
            load_balancing_strategy=strategy,
            ownership_expiration=timedelta(seconds=expiration_s),
            handoff_timeout=timedelta(seconds=rng.choice([5, 30])),
            shutdown_timeout=timedelta(seconds=rng.choice([5, 30])),
            checkpoint_policy=rng.choice(
                [
                    CheckpointPolicy(),
                    CheckpointPolicy(every_events=3),
                    CheckpointPolicy(every_events=None, every=timedelta(seconds=20)),
                    CheckpointPolicy.manual(),
                ]
            ),
            handler_backoff=Backoff(most=timedelta(seconds=5)),
            receiver_backoff=Backoff(most=timedelta(seconds=10)),
            batch_size_max=rng.choice([1, 7, 300]),
            uses_store_thread=False,
        ),
        noise=rng.choice([StoreFaults(), *NOISES]),
        faults=tuple(sorted(faults, key=lambda fault: fault.at_s)),
    )


async def play(story: Story, world: World) -> None:
    """Let a story happen in a world, and end with everything that was broken well again."""
    world.set_faults(story.noise)
    for number in range(story.node_count):
        world.start(f"n{number}")
    lasting: list[asyncio.Task[None]] = []
    for fault in story.faults:
        await asyncio.sleep(max(0.0, fault.at_s - world.now_s))
        world.invariants.note(world.now_s, fault.kind, str(fault.which))
        lasting.append(asyncio.create_task(HAPPENINGS[fault.kind](world, fault)))
    if lasting:
        await asyncio.wait(lasting)
    for task in lasting:
        task.result()
    world.set_faults(SLOW_LINE)
    if not world.there:
        world.start("last")


# What can happen. Each returns when it is over.


def _chosen(world: World, fault: Fault) -> Node | None:
    nodes = [node for node in world.there if not node.process.is_paused]
    return nodes[fault.which % len(nodes)] if nodes else None


async def _join(world: World, _: Fault) -> None:
    world.start(f"n{len(world.nodes)}")


async def _leave(world: World, fault: Fault) -> None:
    node = _chosen(world, fault)
    if node is not None:
        world.leave(node)


async def _crash(world: World, fault: Fault) -> None:
    node = _chosen(world, fault)
    if node is not None:
        world.crash(node)


async def _restart(world: World, fault: Fault) -> None:
    node = _chosen(world, fault)
    if node is not None:
        world.crash(node)
        await asyncio.sleep(fault.duration_s)
        world.start(node.owner_id)


async def _pause(world: World, fault: Fault) -> None:
    node = _chosen(world, fault)
    if node is not None:
        node.process.pause()
        await asyncio.sleep(fault.duration_s)
        node.process.resume()


async def _cut_off(world: World, fault: Fault) -> None:
    """One node reaches the store no more."""
    node = _chosen(world, fault)
    if node is not None:
        with node.line.outage():
            await asyncio.sleep(fault.duration_s)


async def _store_outage(world: World, fault: Fault) -> None:
    nodes = list(world.nodes)
    for node in nodes:
        node.line.is_out = True
    await asyncio.sleep(fault.duration_s)
    for node in nodes:
        node.line.is_out = False


async def _noise(world: World, fault: Fault) -> None:
    before = world.faults
    world.set_faults(NOISES[fault.which % len(NOISES)])
    await asyncio.sleep(fault.duration_s)
    world.set_faults(before)


async def _hub_outage(world: World, fault: Fault) -> None:
    world.hub.begin_outage()
    await asyncio.sleep(fault.duration_s)
    world.hub.end_outage()


async def _displace(world: World, fault: Fault) -> None:
    ids = world.hub.partition_ids()
    world.hub.displace(ids[fault.which % len(ids)], group=world.group.name)


async def _break_links(world: World, _: Fault) -> None:
    world.hub.break_links()


async def _slow(world: World, fault: Fault) -> None:
    world.behaviour.seconds_per_event = (0.1, 2.0, 20.0)[fault.which % 3]
    await asyncio.sleep(fault.duration_s)
    world.behaviour.seconds_per_event = 0.0


async def _failing(world: World, fault: Fault) -> None:
    world.behaviour.failure_rate = (0.1, 0.5, 1.0)[fault.which % 3]
    await asyncio.sleep(fault.duration_s)
    world.behaviour.failure_rate = 0.0


async def _grow(world: World, fault: Fault) -> None:
    world.hub.grow(len(world.hub.partition_ids()) + 1 + fault.which % 4)


async def _storm(world: World, fault: Fault) -> None:
    rng = Random(fault.which)
    for _ in range(rng.randint(2, 6)):
        await (_join if rng.random() < 0.5 else _leave)(world, fault)
        await asyncio.sleep(rng.uniform(0, fault.duration_s / 5))


async def _operator(world: World, fault: Fault) -> None:
    for partition_id in world.hub.partition_ids():
        await world.write_as_operator(partition_id)
        await asyncio.sleep(fault.duration_s / 100)


HAPPENINGS: dict[str, Callable[[World, Fault], Coroutine[object, object, None]]] = {
    "join": _join,
    "leave": _leave,
    "crash": _crash,
    "restart": _restart,
    "pause": _pause,
    "cut_off": _cut_off,
    "store_outage": _store_outage,
    "noise": _noise,
    "hub_outage": _hub_outage,
    "displace": _displace,
    "break_links": _break_links,
    "slow": _slow,
    "failing": _failing,
    "grow": _grow,
    "storm": _storm,
    "operator": _operator,
}
KINDS = tuple(HAPPENINGS)

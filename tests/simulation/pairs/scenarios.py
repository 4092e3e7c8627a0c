"""What a group does while a play has its faults: a dozen scenarios, each short."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace

from eventproc import EventProcessorConfig
from eventproc._core.placement.even import Even
from eventproc._core.placement.published import Published
from eventproc.admin import pause_group, resume_group
from tests.simulation.pairs.resources import ResourcesWorld
from tests.simulation.pairs.world import CONFIG, EXPIRATION_S, PairsWorld

BUSY_S = 0.7
"""Seconds that a handler takes for an event, so that some are in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A group at rest, and what happens to it then."""

    act: Callable[[PairsWorld], Coroutine[object, object, None]]
    members: tuple[str, ...] = ("a", "b")
    """The processors before it."""

    partition_count: int = 2
    seconds_per_event: float = 0.0
    config: EventProcessorConfig = CONFIG
    deployment_id: str = ""
    world: type[PairsWorld] = PairsWorld


async def cold_start(world: PairsWorld) -> None:
    """Two start at once, and none was there."""
    world.join("a", "b")


async def join(world: PairsWorld) -> None:
    """One joins another."""
    world.join("b")


async def leave(world: PairsWorld) -> None:
    """One of two stops gracefully."""
    await world.depart("a")


async def crash(world: PairsWorld) -> None:
    """One of two is killed."""
    world.end_at_once("a")
    await asyncio.sleep(EXPIRATION_S)


async def restart(world: PairsWorld) -> None:
    """One of two is killed, and starts again under its owner id."""
    world.end_at_once("a")
    await asyncio.sleep(1)
    world.join("a")


async def busy_join(world: PairsWorld) -> None:
    """One joins two that have events in flight."""
    world.join("c")


async def adopt(world: PairsWorld) -> None:
    """All are killed, and others take over their states and positions."""
    for owner_id in ("a", "b"):
        world.end_at_once(owner_id)
    world.join("c", "d")
    await asyncio.sleep(EXPIRATION_S)


async def pause(world: PairsWorld) -> None:
    """An operator pauses the group, and resumes it."""
    store, expiration = world.operator.store, world.config.ownership_expiration
    await pause_group(store, world.group, None, reason="INC-1", expiration=expiration)
    await asyncio.sleep(5)
    await resume_group(store, world.group, None)


async def deploy(world: PairsWorld) -> None:
    """Two of a new deployment take the place of two old ones."""
    world.join("c", "d", deployment_id="new")
    await asyncio.sleep(3)
    await world.depart("a")
    await world.depart("b")


async def take_turns(world: PairsWorld) -> None:
    """One joins two, and then one of them stops."""
    world.join("c")
    await asyncio.sleep(6)
    await world.depart("a")


async def scale_in(world: PairsWorld) -> None:
    """Two of three stop at once."""
    await world.depart("a", "b")


SCENARIOS: dict[str, Scenario] = {
    "cold_start": Scenario(act=cold_start, members=()),
    "join": Scenario(act=join, members=("a",), partition_count=3),
    "leave": Scenario(act=leave),
    "crash": Scenario(act=crash),
    "restart": Scenario(act=restart),
    "busy_join": Scenario(act=busy_join, partition_count=3, seconds_per_event=BUSY_S),
    "adopt": Scenario(act=adopt, partition_count=1),
    "pause": Scenario(act=pause),
    "deploy": Scenario(act=deploy, deployment_id="old"),
    "published": Scenario(
        act=busy_join, partition_count=3, config=replace(CONFIG, placement=Published(Even()))
    ),
    "resources": Scenario(act=take_turns, world=ResourcesWorld),
    "scale_in": Scenario(act=scale_in, members=("a", "b", "c"), partition_count=4),
}

"""Events that hang or kill: each may delay only its own partition, for a bounded time."""

import asyncio
from collections.abc import Callable, Coroutine

from tests.simulation.faults import Fault
from tests.simulation.world import World


def _place(world: World, fault: Fault) -> tuple[str, int]:
    """Return the next event of some partition."""
    ids = world.hub.partition_ids()
    partition_id = ids[fault.which // 7 % len(ids)]
    newest = world.hub.partition_properties(partition_id).last_enqueued_sequence_number
    return partition_id, newest + 1


async def _hang(world: World, fault: Fault) -> None:
    """Every call with this event hangs, for some time or for ever."""
    place = _place(world, fault)
    world.behaviour.hanging.add(place)
    if fault.which % 2:
        await asyncio.sleep(fault.duration_s)
        world.behaviour.hanging.discard(place)


async def _deadly(world: World, fault: Fault) -> None:
    """This event kills every process that handles it, for some time or for ever."""
    place = _place(world, fault)
    world.behaviour.deadly.add(place)
    if fault.which % 3 == 0:
        await asyncio.sleep(fault.duration_s)
        world.behaviour.deadly.discard(place)


TROUBLES: dict[str, Callable[[World, Fault], Coroutine[object, object, None]]] = {
    function.__name__.lstrip("_"): function for function in (_hang, _deadly)
}

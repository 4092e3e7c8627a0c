"""Faults, each kind as a coroutine that returns when the fault is over."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from eventproc.testing import StoreFaults
from eventproc.testing._faults import Fate
from tests.simulation.nodes import CheckedNode
from tests.simulation.world import World

NOISES = (
    StoreFaults(delay_max=timedelta(seconds=0.3)),
    StoreFaults(delay_max=timedelta(seconds=3)),
    StoreFaults(answer_lost_rate=0.2, silence=timedelta(seconds=1)),
    StoreFaults(request_lost_rate=0.2, silence=timedelta(seconds=4)),
    StoreFaults(throttle_rate=0.3),
    StoreFaults(stale_rate=0.3, stale_max=timedelta(seconds=15)),
    StoreFaults(
        delay_max=timedelta(seconds=1),
        throttle_rate=0.1,
        request_lost_rate=0.1,
        answer_lost_rate=0.1,
        silence=timedelta(seconds=2),
        stale_rate=0.1,
        stale_max=timedelta(seconds=40),
    ),
)

STEPS_MAX = 400
"""A process breaks within so many steps, ..."""

STEPS_WITHIN_S = 30.0
"""... or not at all if it does not run as many in this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault."""

    at_s: float
    kind: str
    which: int
    """Which node, partition or variety, modulo their number."""

    duration_s: float


def _chosen(world: World, fault: Fault) -> CheckedNode | None:
    nodes = [node for node in world.there if not node.process.is_paused]
    return nodes[fault.which % len(nodes)] if nodes else None


def _ours(world: World) -> list[CheckedNode]:
    return [node for node in world.there if not node.actor.is_foreign]


def _chosen_of_ours(world: World, fault: Fault) -> CheckedNode | None:
    nodes = [node for node in _ours(world) if not node.process.is_paused]
    return nodes[fault.which % len(nodes)] if nodes else None


def _partition(world: World, fault: Fault) -> str:
    ids = world.hub.partition_ids()
    return ids[fault.which // 7 % len(ids)]


# Processors start and stop.


async def _join(world: World, _: Fault) -> None:
    world.start(f"n{len(world.nodes)}")


async def _leave(world: World, fault: Fault) -> None:
    node = _chosen(world, fault)
    if node is not None:
        world.leave(node)


async def _storm(world: World, fault: Fault) -> None:
    """Many processors join and leave at once."""
    rng = Random(fault.which)
    for _ in range(rng.randint(2, 6)):
        await (_join if rng.random() < 0.5 else _leave)(world, fault)
        await asyncio.sleep(rng.uniform(0, fault.duration_s / 5))


async def _deploy(world: World, fault: Fault) -> None:
    """Each processor is replaced by a new one, which starts before or after the old one stops."""
    is_before, keeps_names = fault.which % 2 == 0, fault.which % 3 == 0
    deployment_id = f"{fault.which}" if fault.which % 5 else ""
    for node in _ours(world):
        if is_before and not keeps_names:
            world.start(f"n{len(world.nodes)}", deployment_id=deployment_id)
            await asyncio.sleep(fault.duration_s / 5)
        world.leave(node)
        if keeps_names:
            await world.until_gone(node)
            world.start(node.owner_id, deployment_id=deployment_id)
        elif not is_before:
            world.start(f"n{len(world.nodes)}", deployment_id=deployment_id)
        await asyncio.sleep(fault.duration_s / 5)


async def _flap(world: World, fault: Fault) -> None:
    """One processor crashes and restarts under the same owner id, again and again."""
    node = _chosen_of_ours(world, fault)
    for _ in range(4):
        if node is None or not node.is_there:
            return
        world.crash(node)
        await asyncio.sleep(fault.duration_s / 20)
        node = world.start(node.owner_id)
        await asyncio.sleep(fault.duration_s / 10)


async def _grow(world: World, fault: Fault) -> None:
    world.hub.grow(len(world.hub.partition_ids()) + 1 + fault.which % 4)


# Processes.


async def _crash(world: World, fault: Fault) -> None:
    node = _chosen(world, fault)
    if node is not None:
        world.crash(node)


async def _crash_at_step(world: World, fault: Fault) -> None:
    """At any await of whatever it does now."""
    node = _chosen(world, fault)
    if node is not None and await _breaks(node, fault):
        world.crash(node)


async def _restart(world: World, fault: Fault) -> None:
    node = _chosen_of_ours(world, fault)
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


async def _sleep(world: World, fault: Fault) -> None:
    """The machine of a process sleeps; its timers do not count that time."""
    node = _chosen(world, fault)
    if node is not None:
        node.process.pause()
        await asyncio.sleep(fault.duration_s)
        node.process.wake(fault.duration_s)


async def _pause_at_step(world: World, fault: Fault) -> None:
    """At any await of whatever it does now."""
    node = _chosen(world, fault)
    if node is not None and await _breaks(node, fault):
        await asyncio.sleep(fault.duration_s)
        if fault.which % 2:
            node.process.resume()
        else:
            node.process.wake(fault.duration_s)


async def _breaks(node: CheckedNode, fault: Fault) -> bool:
    """Pause a process at one of its next steps; return whether it reached that step."""
    process, paused = node.process, asyncio.Event()

    def pause() -> None:
        process.pause()
        paused.set()

    process.break_in(1 + fault.which % STEPS_MAX, pause)
    try:
        async with asyncio.timeout(STEPS_WITHIN_S):
            await paused.wait()
    except TimeoutError:
        return False
    finally:
        process.break_at = 0
    return True


async def _replace_paused(world: World, fault: Fault) -> None:
    """A processor is paused, another starts under the same owner id, and the first resumes."""
    node = _chosen_of_ours(world, fault)
    if node is None:
        return
    node.process.pause()
    await asyncio.sleep(fault.duration_s / 2)
    world.start(node.owner_id, is_supervised=False)
    await asyncio.sleep(fault.duration_s / 2)
    node.process.resume()


async def _twin(world: World, fault: Fault) -> None:
    """A second processor starts under the owner id of a live one."""
    node = _chosen_of_ours(world, fault)
    if node is not None:
        world.start(node.owner_id, is_supervised=False)


async def _jump(world: World, fault: Fault) -> None:
    """The clock for leases jumps forward."""
    node = _chosen_of_ours(world, fault)
    if node is not None:
        node.process.jump(fault.duration_s)


# The store.


async def _cut_off(world: World, fault: Fault) -> None:
    """The store is unreachable for one node."""
    node = _chosen(world, fault)
    if node is not None:
        with node.connection.outage():
            await asyncio.sleep(fault.duration_s)


async def _store_outage(world: World, fault: Fault) -> None:
    """For all; one in four can still be read, as a SQLite file that another program has locked."""
    nodes, can_be_read = list(world.nodes), fault.which % 4 == 3
    for node in nodes:
        if can_be_read:
            node.connection.fate = only_reads
        else:
            node.connection.is_out = True
    await asyncio.sleep(fault.duration_s)
    for node in nodes:
        node.connection.is_out, node.connection.fate = False, None


def only_reads(method: str, fate: Fate) -> Fate:
    """Lose all writes."""
    if method.startswith(("list_", "read_")):
        return fate
    return replace(fate, is_carried_out=False, is_answered=False)


async def _noise(world: World, fault: Fault) -> None:
    before = world.faults
    world.set_faults(NOISES[fault.which % len(NOISES)])
    await asyncio.sleep(fault.duration_s)
    world.set_faults(before)


async def _slow_node(world: World, fault: Fault) -> None:
    """The store is slow for one node only."""
    node = _chosen(world, fault)
    if node is not None:
        node.connection.faults = replace(world.faults, delay_max=timedelta(seconds=3))


async def _operator(world: World, fault: Fault) -> None:
    """An operator rewrites checkpoints unchanged."""
    for partition_id in world.hub.partition_ids():
        await world.operator.rewrite_checkpoint(partition_id)
        await asyncio.sleep(fault.duration_s / 100)


async def _delete_ownership(world: World, fault: Fault) -> None:
    """An operator deletes one ownership record, or all of them."""
    ids = world.hub.partition_ids() if fault.which % 2 else [_partition(world, fault)]
    for partition_id in ids:
        world.operator.delete_ownership(partition_id)


async def _edit_ownership(world: World, fault: Fault) -> None:
    """An operator edits a record's owner: none, an unknown one, or another processor."""
    names = [None, "stranger", "N0", " ", "\N{SNOWMAN}", *(node.owner_id for node in world.nodes)]
    world.operator.edit_ownership(_partition(world, fault), names[fault.which % len(names)])


async def _delete_members(world: World, fault: Fault) -> None:
    """An operator deletes one member record, or all of them."""
    names = sorted(world.records().member_by_owner)
    for name in names if fault.which % 2 else names[:1]:
        world.operator.delete_member(name)


async def _delete_checkpoint(world: World, fault: Fault) -> None:
    """An operator deletes a checkpoint: the partition may be read again from its beginning."""
    world.operator.delete_checkpoint(_partition(world, fault))


# The hub.


async def _hub_outage(world: World, fault: Fault) -> None:
    world.hub.begin_outage()
    await asyncio.sleep(fault.duration_s)
    world.hub.end_outage()


async def _displace(world: World, fault: Fault) -> None:
    world.hub.displace(_partition(world, fault), group=world.group.name)


async def _break_links(world: World, _: Fault) -> None:
    world.hub.break_links()


# Handlers.


async def _slow(world: World, fault: Fault) -> None:
    world.behaviour.seconds_per_event = (0.1, 2.0, 20.0)[fault.which % 3]
    await asyncio.sleep(fault.duration_s)
    world.behaviour.seconds_per_event = 0.0


async def _ignore_cancellation(world: World, fault: Fault) -> None:
    """Handlers are slow, and ignore cancellation."""
    world.behaviour.ignores_cancellation = world.behaviour.ever_ignored_cancellation = True
    world.behaviour.seconds_per_event = fault.duration_s / 3
    await asyncio.sleep(fault.duration_s)
    world.behaviour.seconds_per_event = 0.0
    await asyncio.sleep(fault.duration_s / 3)
    world.behaviour.ignores_cancellation = False


async def _failing(world: World, fault: Fault) -> None:
    world.behaviour.failure_rate = (0.1, 0.5, 1.0)[fault.which % 3]
    await asyncio.sleep(fault.duration_s)
    world.behaviour.failure_rate = 0.0


async def _poison(world: World, fault: Fault) -> None:
    """Every handler fails on the next event of a partition, for some time or for ever."""
    partition_id = _partition(world, fault)
    newest = world.hub.partition_properties(partition_id).last_enqueued_sequence_number
    event = (partition_id, newest + 1)
    world.behaviour.poison.add(event)
    if fault.which % 2:
        await asyncio.sleep(fault.duration_s)
        world.behaviour.poison.discard(event)


FAULTS: dict[str, Callable[[World, Fault], Coroutine[object, object, None]]] = {
    function.__name__.lstrip("_"): function
    for function in (
        _join,
        _leave,
        _storm,
        _deploy,
        _flap,
        _grow,
        _crash,
        _crash_at_step,
        _restart,
        _pause,
        _sleep,
        _pause_at_step,
        _replace_paused,
        _twin,
        _jump,
        _cut_off,
        _store_outage,
        _noise,
        _slow_node,
        _operator,
        _delete_ownership,
        _edit_ownership,
        _delete_members,
        _delete_checkpoint,
        _hub_outage,
        _displace,
        _break_links,
        _slow,
        _ignore_cancellation,
        _failing,
        _poison,
    )
}

"""An operator pauses partitions, at any time, and resumes them between two situations.

Pauses are a condition of a small world and not a situation: whatever happens while partitions are
paused, from a join to a restart of all, nothing of them reaches a handler.
"""

import asyncio
from contextlib import suppress
from random import Random
from typing import Final

from eventproc import ConfigurationError
from eventproc._core.ownership.pauses import NO_PAUSES
from eventproc.admin import pause_group, resume_group
from tests.simulation.actor import Actor
from tests.simulation.nodes import CheckedNode
from tests.simulation.small.world import LOOK_S, SmallWorld

PAUSED_RATE: Final = 0.7
"""How often an operator pauses something in a situation."""

GROUP_RATE: Final = 0.3
"""How often that is the whole group."""

RESUMED_RATE: Final = 0.4
"""How often an operator resumes between two situations."""

PAUSED_AFTER_MAX_S: Final = 20.0
"""The longest time from the beginning of a situation to a pause in it."""


class PausingOperator:
    """An operator who pauses and resumes a small world."""

    def __init__(self, world: SmallWorld, rng: Random) -> None:
        self._world = world
        self._rng = rng
        world.invariants.cycle_count = self._cycle_count

    def _cycle_count(self, actor: Actor) -> int:
        (node,) = [node for node in self._world.nodes if node.actor is actor]
        return node.statistics.cycle_count

    async def pause(self) -> None:
        """Perhaps pause the group or some partitions, at the beginning of a situation or in it."""
        world, rng = self._world, self._rng
        if rng.random() >= PAUSED_RATE:
            return
        await asyncio.sleep(rng.choice([0, rng.uniform(0, PAUSED_AFTER_MAX_S)]))
        partition_ids = list(world.hub.partition_ids())
        is_whole = rng.random() < GROUP_RATE
        chosen = rng.sample(partition_ids, rng.randint(1, len(partition_ids)))
        # An owner whose member record a situation deleted looks like a processor of another SDK.
        with suppress(ConfigurationError):
            pauses = await pause_group(
                world.operator.store,
                world.group,
                None if is_whole else chosen,
                reason="INC-1",
                expiration=world.config.ownership_expiration,
            )
            world.invariants.changed(pauses)

    async def perhaps_resume(self) -> None:
        """Resume all or one partition, or let the pauses last over the next situation, too."""
        pauses, rng = self._world.invariants.pauses, self._rng
        if pauses == NO_PAUSES:
            return
        await self._expect_known()
        if rng.random() < RESUMED_RATE:
            is_single = pauses.group is None and rng.random() < 0.5
            await self._resume(rng.sample(sorted(pauses.by_partition), 1) if is_single else None)

    async def resume_all(self) -> None:
        """End all pauses."""
        if self._world.invariants.pauses != NO_PAUSES:
            await self._expect_known()
            await self._resume(None)

    async def _resume(self, partition_ids: list[str] | None) -> None:
        world = self._world
        pauses = await resume_group(world.operator.store, world.group, partition_ids)
        world.invariants.changed(pauses)
        await self._expect_known()
        await world.catch_up()

    async def _expect_known(self) -> None:
        """Check that every processor learns within one poll what is paused, without faults."""
        world = self._world
        await asyncio.sleep(world.polled_s)
        while any(map(world.may_not_have_polled, self._ignorant())):  # noqa: ASYNC110 - no event
            await asyncio.sleep(LOOK_S)
        ignorant = [node.owner_id for node in self._ignorant()]
        world.expect(not ignorant, f"{ignorant} have not read what is paused")

    def _ignorant(self) -> list[CheckedNode]:
        knowing = self._world.invariants.knowing
        return [n for n in self._world.ours if n.has_started and n.actor not in knowing]

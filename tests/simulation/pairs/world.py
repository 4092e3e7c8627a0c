"""A world in which everything is answered at once, except for the faults that a play has."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from eventproc import Backoff, CheckpointPolicy, EventProcessorConfig, SourceUnavailableError
from eventproc.models import PartitionOwnership
from eventproc.ports import EventSource
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing import StoreFaults
from eventproc.testing._processes import Process
from tests.simulation.actor import Actor
from tests.simulation.checked_store import CheckedConnection
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.nodes import CheckedNode
from tests.simulation.pairs.points import FaultKind, Injector, Point
from tests.simulation.world import World

CONFIG = EventProcessorConfig(
    uses_store_thread=False,
    load_balancing_interval=timedelta(seconds=2),
    ownership_expiration=timedelta(seconds=12),
    handoff_timeout=timedelta(seconds=4),
    shutdown_timeout=timedelta(seconds=3.5),
    standby_timeout=timedelta(seconds=20),
    handler_backoff=Backoff(maximum=timedelta(seconds=1)),
    receiver_backoff=Backoff(maximum=timedelta(seconds=1)),
    checkpoint_policy=CheckpointPolicy(interval=timedelta(seconds=3)),
    stall_timeout=None,
)
EXPIRATION_S = CONFIG.ownership_expiration.total_seconds()
HEALED_WITHIN_S = 6 * EXPIRATION_S
CALM_S = 4.0
"""So long the group has to be at rest."""

LOOK_S = 0.5
LINE = StoreFaults(delay_min=timedelta(seconds=0.02), delay_max=timedelta(seconds=0.02))


class PointSource(MemoryEventSource):
    """Opens links that are points of the play."""

    def __init__(self, hub: MemoryHub, injector: Injector) -> None:
        super().__init__(hub)
        self.node: CheckedNode | None = None
        self._injector = injector

    async def open_receiver(self, consumer_group, partition_id, position):
        assert self.node is not None
        if self._injector.opens(self.node):
            raise SourceUnavailableError("refused on purpose")
        return await super().open_receiver(consumer_group, partition_id, position)


class PairsInvariants(Invariants):
    """Clocks run as fast as the store's, so an owner may never trust a lease that has expired."""

    def owned(
        self,
        actor: Actor,
        before: PartitionOwnership | None,
        after: PartitionOwnership,
        *,
        was_live: bool,
    ) -> None:
        if not was_live:
            self.check_taken_over(actor, after)
        super().owned(actor, before, after, was_live=was_live)


class PairsWorld(World):
    """The world of one play."""

    invariants_class = PairsInvariants

    def __init__(
        self,
        name: str,
        kind_at: Callable[[Point], FaultKind | None],
        *,
        partition_count: int,
        config: EventProcessorConfig,
    ) -> None:
        super().__init__(
            f"pairs/{name}", partition_count=partition_count, config=config, publish_every_s=0.9
        )
        self.set_faults(LINE)
        self.injector = Injector(
            kind_at, lease_s=EXPIRATION_S, wire=self.wire, note=self.invariants.note
        )
        self._newest_source: PointSource | None = None
        self.begun_s = 0.0
        """When the scenario began."""

    def make_source(self) -> EventSource:
        self._newest_source = PointSource(self.hub, self.injector)
        return self._newest_source

    def _add(self, process: Process, processor: Any, connection: CheckedConnection) -> CheckedNode:
        node = super()._add(process, processor, connection)
        if self._newest_source is not None:
            self._newest_source.node = node
        self.injector.watch(node)
        return node

    def _is_well(self, node: CheckedNode) -> bool:
        return node not in self.injector.hit

    def join(self, *owner_ids: str, deployment_id: str = "") -> None:
        """Start processors."""
        for owner_id in owner_ids:
            self.start(owner_id, deployment_id=deployment_id)

    async def depart(self, *owner_ids: str) -> None:
        """Have processors stop gracefully, those that a fault has not ended; wait for them."""
        leaving = [node for node in self.there if node.owner_id in owner_ids]
        for node in leaving:
            self.leave(node)
        for node in leaving:
            await self.until_gone(node)

    def end_at_once(self, owner_id: str) -> None:
        """Kill a processor, if a fault has not ended it."""
        for node in self.there:
            if node.owner_id == owner_id:
                self.crash(node)

    async def until_rest(self) -> None:
        """Wait until the newest fault is over and the group is at rest; replace the last one.

        Raises:
            Violation: that takes longer than the group has for it.
        """
        calm_since_s = self.now_s
        while self.now_s - calm_since_s < CALM_S:
            await asyncio.sleep(LOOK_S)
            if not self.there:
                self.join(f"spare-{len(self.nodes)}")
            over_s = max(self.injector.last_at_s, self.begun_s)
            if self.now_s > over_s + HEALED_WITHIN_S:
                raise Violation(f"no rest within {HEALED_WITHIN_S} s: {self.describe()}")
            if self.now_s < over_s or not self.is_at_rest:
                calm_since_s = self.now_s

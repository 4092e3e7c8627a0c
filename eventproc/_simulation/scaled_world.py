"""Runs a script on virtual time; with a scaler, which follows a load that changes.

The scaler is the real one, and reads the simulated store and hub as it would the real ones.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil, inf
from typing import Final

from eventproc._base.tasks import together
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.scaling.readings import PartitionReading, Reading
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.handler import HandlerFactory, PartitionContext, PartitionHandler
from eventproc._group.autoscaler import Autoscaler, read_group
from eventproc._simulation.history import History, Voted
from eventproc._simulation.script import Action, Scaling, Script, ScriptedEvent
from eventproc._simulation.world import TICK_S, StoreFactory, World
from eventproc.models import ReceivedEvent
from eventproc.testing._processes import run_processes

EVENTS_MAX: Final = 40_000
"""The most events in a simulation. If more would arrive, each one stands for several."""

CALL_S: Final = 0.5
"""How long a call of the handler takes at most, unless one event takes longer."""


def run_script(script: Script, make_account: StoreFactory) -> History:
    """Run a script on virtual time. The same script gives the same history."""

    async def main() -> History:
        if script.scaling is not None:
            return await ScaledWorld(script, script.scaling, make_account).run()
        return await World(script, make_account).run()

    return run_processes(main(), within_s=inf)


class Busy(PartitionHandler):
    """A handler whose events need time; a process handles one of its calls at a time."""

    def __init__(self, world: "ScaledWorld", core: asyncio.Lock, event_s: float) -> None:
        self._world = world
        self._core = core
        self._event_s = event_s

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Take the time that these events need, and report them as handled."""
        async with self._core:
            await asyncio.sleep(len(events) * self._event_s)
        await self._world.handle(context.partition_id, events)


class ScaledWorld(World):
    """A world with a scaler that starts and stops processes, as Kubernetes would by its votes."""

    def __init__(self, script: Script, scaling: Scaling, make_account: StoreFactory) -> None:
        """Build the world on the running loop, which must be a ``ProcessLoop``."""
        super().__init__(script, make_account)
        self._scaling = scaling
        self._load = scaling.load
        self._unit = ceil(max(1.0, _event_count(script, scaling) / EVENTS_MAX))
        """How many events one simulated event stands for."""

        self.history.events_each = self._unit
        self._published_count = 0
        self._handled_by_partition: dict[str, int] = {}
        self._starting: list[asyncio.Task[None]] = []
        """Processes that are about to start."""

        self._scaler = Autoscaler(self._read, scaling.rules)

    async def _read(self) -> Reading:
        expiration = self._script.config.ownership_expiration
        async with self._make_store() as store, self.make_source() as source:
            reading = await read_group(
                store, self.group, source, expiration=expiration, clock=lambda: self.now_s
            )
        return magnified(reading, self._unit)

    # What the script does to it.

    def _apply(self, event: ScriptedEvent) -> None:
        if event.action is Action.LOAD:
            self._load = float(event.count)
        elif event.action is Action.GROW:
            super()._apply(event)
        elif self._expected:
            super()._apply(replace(event, count=min(event.count, len(self._expected))))

    async def _publish(self) -> None:
        """Publish at the rate of the load, and follow the votes; both until cancelled."""
        try:
            await together(self._publish_load(), self._follow_votes())
        finally:
            for task in self._starting:
                task.cancel()

    async def _publish_load(self) -> None:
        due = 0.0
        while True:
            due += self._load * TICK_S / self._unit
            partition_ids = self.hub.partition_ids()
            while due >= 1:
                due -= 1
                chosen = partition_ids[self._published_count % len(partition_ids)]
                self.hub.publish(b"", partition_id=chosen)
                self._published_count += 1
            await asyncio.sleep(TICK_S)

    # Processes.

    def _handler_factory(self) -> HandlerFactory:
        core, event_s = asyncio.Lock(), self._unit / self._scaling.process_rate
        return lambda: Busy(self, core, event_s)

    def _config_of(self, facts: MemberFacts) -> EventProcessorConfig:
        in_a_call = int(CALL_S * self._scaling.process_rate / self._unit)
        return replace(super()._config_of(facts), batch_size_max=max(1, in_a_call))

    async def handle(self, partition_id: str, events: Sequence[ReceivedEvent]) -> None:
        """Report events as handled."""
        await super().handle(partition_id, events)
        last, former = events[-1].sequence_number, self._handled_by_partition.get(partition_id, -1)
        self._handled_by_partition[partition_id] = max(last, former)

    @property
    def _backlog(self) -> int:
        handled = sum(last + 1 for last in self._handled_by_partition.values())
        return (self._published_count - handled) * self._unit

    async def _follow_votes(self) -> None:
        while True:
            await asyncio.sleep(self._scaling.every.total_seconds())
            vote = await self._scaler.decide()
            decision = vote.decision
            self.observer.voted(
                Voted(
                    at_seconds=round(self.now_s, 3),
                    replicas=decision.replicas,
                    reason=decision.reason.value,
                    running=len(self._expected),
                    load=self._load,
                    backlog=self._backlog,
                )
            )
            if decision.replicas is not None:
                self._scale_to(decision.replicas)

    def _scale_to(self, wanted: int) -> None:
        """Start processes, or stop some: first those that are about to start, then the newest.

        During a restart or a rolling deployment nothing else is started or stopped.
        """
        if any(not task.done() for task in self._background):
            return
        self._starting = [task for task in self._starting if not task.done()]
        missing = wanted - len(self._expected) - len(self._starting)
        for _ in range(missing):
            self._starting.append(asyncio.create_task(self._start_later()))
        while missing < 0 and self._starting:
            self._starting.pop().cancel()
            missing += 1
        if missing < 0:
            self._leave(self._expected[missing:])

    async def _start_later(self) -> None:
        await asyncio.sleep(self._scaling.rules.start_time.total_seconds())
        self._join(1, self._common_deployment_id())


def magnified(reading: Reading, unit: int) -> Reading:
    """Return the reading of a hub in which each event is *unit* events."""
    return replace(
        reading,
        partitions={p: _magnified(each, unit) for p, each in reading.partitions.items()},
    )


def _magnified(partition: PartitionReading, unit: int) -> PartitionReading:
    handled = partition.handled
    return replace(
        partition,
        first=partition.first * unit,
        last=(partition.last + 1) * unit - 1,
        handled=None if handled is None else (handled + 1) * unit - 1,
    )


def _event_count(script: Script, scaling: Scaling) -> float:
    """Return how many events arrive in the whole simulation."""
    loads = [(0.0, scaling.load)]
    loads += [(at_s, e.count) for at_s, e in script.timed() if e.action is Action.LOAD]
    ends_s = [*(at_s for at_s, _ in loads), script.duration.total_seconds()]
    spans_s = (end_s - begin_s for begin_s, end_s in pairwise(ends_s))
    return sum(load * span_s for (_, load), span_s in zip(loads, spans_s, strict=True))

"""Runs a script: a group of real processors on virtual time, over one store and one hub.

Only the store, which the caller passes in, and the hub, which is in memory, differ from
production.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random
from typing import Final

from eventproc._base.tasks import end
from eventproc._core.placement.placement import MemberFacts
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.handler import HandlerFactory, PartitionContext, PartitionHandler
from eventproc._runtime.processors import EventProcessor
from eventproc._simulation.history import History
from eventproc._simulation.observer import Fleet, Observer
from eventproc._simulation.script import RESTART_AFTER_S, Action, Script, ScriptedEvent
from eventproc._simulation.store import ObservedStore, StoreConnection
from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent
from eventproc.ports import CheckpointStore
from eventproc.testing._faults import StoreFaults
from eventproc.testing._processes import Process, Wire

Clock = Callable[[], datetime]

StoreFactory = Callable[[Clock], Callable[[], CheckpointStore]]
"""Takes the clock and makes a storage account; returns a factory of stores over that account."""

FIRST_DEPLOYMENT_ID: Final = "1"
"""Deployment id of the first processors. Each rolling deployment uses the next number."""

TICK_S: Final = 0.25
"""Seconds between two publications. Each publishes to some of the partitions, in turn."""

PARTITIONS_PER_TICK_MAX: Final = 16
"""Bounds the events of a large hub: the more partitions, the rarer the events of each."""

TICKS_MIN: Final = 2

LATENCY_LEAST: Final = 0.5
LATENCY_MOST: Final = 1.5
"""Least and greatest duration of a storage operation, as factors of the mean."""

LEAD_INTERVALS: Final = 1.5
"""Events are published only this long before a script event and after a change of ownership, in
load-balancing intervals. At other times no partition moves, so they would show nothing."""


@dataclass(eq=False, kw_only=True)
class Node:
    """One process with one processor, and its connection to the store."""

    owner_id: str
    process: Process
    processor: EventProcessor
    connection: StoreConnection
    facts: MemberFacts = field(default_factory=MemberFacts)
    """What a placement may know of it."""

    deployment_id: str = ""
    task: asyncio.Task[None] = field(init=False, repr=False)
    """The newest task of the process."""

    def run(self, coroutine: Coroutine[object, object, None]) -> None:
        """Run a coroutine inside the process."""
        self.task = self.process.spawn(coroutine)


class Probe(PartitionHandler):
    """Reports handled events to the world."""

    def __init__(self, world: "World") -> None:
        self._world = world

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Report all events as handled."""
        await self._world.handle(context.partition_id, events)


class World(Fleet):
    """A fleet with a store, a publisher, and processors that join and leave by a script."""

    def __init__(self, script: Script, make_account: StoreFactory) -> None:
        """Build the world on the running loop, which must be a ``ProcessLoop``."""
        super().__init__(script.partition_count)
        self._wire = Wire()
        self._script = script
        self._rng = Random(f"{script.seed}")  # noqa: S311 - a simulation, no secrets
        self._make_store = make_account(self.now)
        self._delays = StoreFaults(
            delay_min=script.latency * LATENCY_LEAST, delay_max=script.latency * LATENCY_MOST
        )
        self.history = History(
            duration_s=script.duration.total_seconds(), placement=script.config.placement
        )
        self.observer = Observer(self.history, self)
        has_bounce = any(event.action is Action.BOUNCE for event in script.events)
        self._config = replace(script.config, static_membership=has_bounce)
        self._nodes: list[Node] = []
        """Every processor that was ever started."""

        self._expected: list[Node] = []
        """The processors that should own partitions, oldest first."""

        self._background: list[asyncio.Task[None]] = []

    @property
    def now_s(self) -> float:
        """Virtual seconds since the beginning, also inside a process."""
        return self._wire.loop.now_s

    async def run(self) -> History:
        """Run the script and return the history.

        Raises:
            ConfigurationError: An event comes while fewer processors run than it needs.
        """
        publishing = asyncio.create_task(self._publish())
        try:
            self.observer.happened(f"start:{self._script.processor_count}")
            self._join(self._script.processor_count, FIRST_DEPLOYMENT_ID)
            for at_s, event in self._script.timed():
                await asyncio.sleep(at_s - self.now_s)
                self.observer.happened(event.name)
                self._apply(event)
            left_s = self.history.duration_s - self.now_s
            failed, _ = await asyncio.wait([publishing], timeout=left_s)
            for task in failed:
                task.result()  # An error: without one it does not end.
        finally:
            await end([publishing])
            await self._end()  # After an error too: tasks of killed processes would never end.
        return self.history

    # Script events.

    def _apply(self, event: ScriptedEvent) -> None:
        if event.takes_processors and event.count > len(self._expected):
            raise ConfigurationError(
                f"event {event.name} at {self.now_s:g} s: fewer processors run at that time "
                f"({len(self._expected)}), because others are between their end and their next "
                f"start, which takes {RESTART_AFTER_S:g} s after a restart: give a later time"
            )
        match event.action:
            case Action.JOIN:
                self._join(event.count, self._common_deployment_id())
            case Action.LEAVE:
                self._leave(self._drawn(event.count))
            case Action.CRASH:
                self._crash(self._drawn(event.count))
            case Action.RESTART:
                self._run_in_background(self._restart(self._drawn(event.count)))
            case Action.BOUNCE:
                self._run_in_background(self._bounce(self._drawn(event.count)))
            case Action.ROLL:
                self._run_in_background(self._roll(event.count))
            case Action.LOAD:
                raise AssertionError("a script without a scaler has no load")
            case Action.GROW:
                self.hub.grow(len(self.hub.partition_ids()) + event.count)
                self._record_membership()

    def _run_in_background(self, what: Coroutine[object, object, None]) -> None:
        self._background.append(asyncio.create_task(what))

    def _drawn(self, count: int) -> list[Node]:
        return self._rng.sample(self._expected, count)

    def _join(self, count: int, deployment_id: str) -> None:
        for _ in range(count):
            name = f"p{len({node.owner_id for node in self._nodes}) + 1:02}"
            self._start(name, deployment_id)
        self._record_membership()

    def _leave(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._expected.remove(node)
            node.run(self._stop(node, node.task))
        self._record_membership()

    def _crash(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._expected.remove(node)
            node.process.kill()
            self.observer.served(node.owner_id, is_up=False)
        self._record_membership()

    async def _restart(self, nodes: Sequence[Node]) -> None:
        self._crash(nodes)
        await asyncio.sleep(RESTART_AFTER_S)
        for node in nodes:
            self._start(node.owner_id, node.deployment_id)
        self._record_membership()

    async def _bounce(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node in self._expected:
                node.run(self._stop(node, node.task))
                while not (node.task.done() or node.process.is_killed):
                    await asyncio.wait([node.task], timeout=TICK_S)
                await asyncio.sleep(RESTART_AFTER_S)
                if node not in self._expected:
                    continue  # Another event has ended it for good meanwhile.
                self._expected.remove(node)
                self._start(node.owner_id, node.deployment_id)
                await asyncio.sleep(self._script.config.load_balancing_interval.total_seconds())

    async def _roll(self, count: int) -> None:
        deployment_id = str(max(int(node.deployment_id) for node in self._nodes) + 1)
        interval_s = self._script.config.load_balancing_interval.total_seconds()
        has_standby = self.history.placement.admits_standby
        for node in list(self._expected[:count]):
            if has_standby:
                self._join(1, deployment_id)
                await asyncio.sleep(interval_s)
            if node in self._expected:
                self._leave([node])
                await asyncio.wait([node.task])
            if not has_standby:
                self._join(1, deployment_id)
                await asyncio.sleep(interval_s)

    def _common_deployment_id(self) -> str:
        """The deployment id that most present processors have; a processor that joins gets it."""
        present = self._expected or self._nodes[-1:]  # A scaler may have stopped all.
        ((deployment_id, _),) = Counter(node.deployment_id for node in present).most_common(1)
        return deployment_id

    def _facts(self, owner_id: str, deployment_id: str) -> MemberFacts:
        """Return what the placement may know of a processor that starts.

        As in a StatefulSet it gets the lowest ordinal that is free, and keeps it in a restart.
        """
        former = [node.facts for node in self._nodes if node.owner_id == owner_id]
        if former:
            return former[-1]
        present = (
            node
            for node in self._nodes
            if node in self._expected or not (node.process.is_killed or node.task.done())
        )
        used = {node.facts.ordinal for node in present}
        weights, number = self._script.weights, len({node.owner_id for node in self._nodes})
        uses_weights = self._config.placement.uses_weights
        return MemberFacts(
            weight=weights[number % len(weights)] if uses_weights else 1.0,
            capacity=self._script.config.capacity,
            ordinal=min(set(range(len(used) + 1)) - used),
            deployment_id=deployment_id if self._config.placement.admits_standby else "",
        )

    def _start(self, owner_id: str, deployment_id: str) -> None:
        facts = self._facts(owner_id, deployment_id)
        name = f"{self._script.seed}/{len(self._nodes)}"
        store = ObservedStore(self._make_store(), owner_id, self.observer)
        connection = StoreConnection(store, Random(f"line/{name}"), self._wire)  # noqa: S311
        connection.faults = self._delays
        rng = Random(f"processor/{name}")  # noqa: S311
        processor = EventProcessor(
            source=self.make_source(),
            store=connection,
            handler=self._handler_factory(),
            owner_id=owner_id,
            config=self._config_of(facts),
            rng=rng,
            identity_bits=rng.getrandbits,
        )
        node = Node(
            owner_id=owner_id,
            facts=facts,
            deployment_id=deployment_id,
            process=Process(owner_id),
            processor=processor,
            connection=connection,
        )
        node.run(processor.start())
        self._nodes.append(node)
        self._expected.append(node)
        self.observer.served(owner_id, is_up=True)

    def _handler_factory(self) -> HandlerFactory:
        """Return what makes the handlers of one process."""
        return lambda: Probe(self)

    def _config_of(self, facts: MemberFacts) -> EventProcessorConfig:
        return replace(
            self._config,
            weight=facts.weight,
            ordinal=facts.ordinal if self._config.placement.uses_ordinals else None,
            deployment_id=facts.deployment_id,
        )

    async def handle(self, partition_id: str, events: Sequence[ReceivedEvent]) -> None:
        """Report events as handled; a handler's work takes no time."""
        for event in events:
            self.observer.handled(partition_id, event)

    async def _stop(self, node: Node, starting: asyncio.Task[None]) -> None:
        await asyncio.wait([starting])
        await node.processor.stop()
        self.observer.served(node.owner_id, is_up=False)

    def _record_membership(self) -> None:
        members = {node.owner_id: node.facts for node in self._expected}
        self.observer.expects(members, self.hub.partition_ids())

    # Background and end.

    async def _publish(self) -> None:
        lead_s = LEAD_INTERVALS * self._script.config.load_balancing_interval.total_seconds()
        begins_s = [at_s for at_s, _ in self._script.timed()]
        tick = 0
        while True:
            is_of_use = self.now_s - self.observer.changed_at_s <= lead_s or any(
                abs(self.now_s - begin_s) <= lead_s for begin_s in begins_s
            )
            partition_ids = self.hub.partition_ids()
            ticks = max(TICKS_MIN, -(-len(partition_ids) // PARTITIONS_PER_TICK_MAX))
            if is_of_use:
                for partition_id in partition_ids[tick % ticks :: ticks]:
                    self.hub.publish(b"", partition_id=partition_id)
            tick += 1
            await asyncio.sleep(TICK_S)

    async def _end(self) -> None:
        """Record the events that were not handled, then stop every processor."""
        for partition_id in self.hub.partition_ids():
            self.observer.ended(partition_id, self.hub.events(partition_id))
        self.observer.history = History(duration_s=0)
        for task in self._background:
            task.cancel()
        stopping = [node for node in self._nodes if not node.process.is_killed]
        for node in stopping:
            node.run(self._stop(node, node.task))
        await asyncio.gather(
            *(node.task for node in stopping), *self._background, return_exceptions=True
        )
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()  # First, so that killed processes do nothing, and log nothing, below.
        for node in self._nodes:
            if node.process.is_killed:
                node.connection.is_out = True
                node.process.run_out()  # so that its tasks can end

"""A group of real processors on virtual time, over one store and one hub, that plays a script.

Everything in it is what runs in production but for its two ends: the store, which is passed in,
and the hub, which is in memory.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from eventproc.handler import PartitionContext, PartitionHandler
from eventproc.models import ReceivedEvent
from eventproc.ports import CheckpointStore
from eventproc.processor import EventProcessor
from eventproc.simulation.foreign import ForeignProcessor, Habits
from eventproc.simulation.history import History
from eventproc.simulation.line import Line
from eventproc.simulation.observer import Observer
from eventproc.simulation.script import RESTART_AFTER_S, Action, Script, ScriptedEvent
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing.virtual_time import run_virtual

Clock = Callable[[], datetime]

StoreFactory = Callable[[Clock], Callable[[], CheckpointStore]]
"""Makes an account that lives by a clock; what it returns makes the store of one processor."""

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)

FIRST_GENERATION: Final = "1"
"""Of the processors that start in the beginning. A rolling deploy brings the next one."""

TICK_S: Final = 0.25
"""How often some partitions, each time others, are given an event."""

PARTITIONS_PER_TICK_MAX: Final = 16
"""So the larger the hub, the rarer a partition's events; at least two come in each second where
there are few partitions."""

TICKS_MIN: Final = 2

LEAD_INTERVALS: Final = 1.5
"""How long before something happens, and after anything changed, events are published. In between
they would only cost time: nothing moves, so nothing can come twice, and what waits for an owner
waits since before."""


@dataclass(slots=True, kw_only=True)
class Node:
    """One processor, and its line to the store."""

    owner_id: str
    generation: str
    processor: EventProcessor | ForeignProcessor
    line: Line
    task: asyncio.Task[None] = field(repr=False)
    """Its start, and when it was told to leave its stop."""


class Probe(PartitionHandler):
    """Tells the observer what it gets; a crashed process gets nothing."""

    def __init__(self, world: "World", line: Line) -> None:
        self._world = world
        self._line = line

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Take them all."""
        await self._line.alive()
        self._world.handled(context.partition_id, events)


class World:
    """A hub, a store, a publisher, and processors that come and go."""

    def __init__(
        self, script: Script, make_account: StoreFactory, habits: Habits | None = None
    ) -> None:
        """Build it on the running loop, whose time must be virtual.

        With *habits* all processors are of another make.
        """
        self._script = script
        self._habits = habits
        self._rng = Random(f"{script.seed}")  # noqa: S311 - a simulation, no secrets
        self._loop = asyncio.get_running_loop()
        self._make_store = make_account(self.now)
        self._hub = MemoryHub(script.partition_count, clock=self.now)
        self.history = History(duration_s=script.duration.total_seconds())
        self.observer = Observer(self.history)
        self._nodes: list[Node] = []
        """Everybody who ever was."""

        self._there: list[Node] = []
        """Who shall have a share, oldest first."""

        self._lasting: list[asyncio.Task[None]] = []

    @property
    def now_s(self) -> float:
        """Virtual seconds since the beginning."""
        return self._loop.time()

    def now(self) -> datetime:
        """The clock of the store and of the hub."""
        return BEGIN + timedelta(seconds=self._loop.time())

    async def play(self) -> History:
        """Let everything happen; return what was seen."""
        publishing = asyncio.create_task(self._publish())
        self.observer.happened(self.now_s, f"start:{self._script.processor_count}")
        self._join(self._script.processor_count, FIRST_GENERATION)
        for at_s, event in self._script.timed():
            await asyncio.sleep(at_s - self.now_s)
            self.observer.happened(self.now_s, event.name)
            self._begin(event)
        await asyncio.sleep(self.history.duration_s - self.now_s)
        publishing.cancel()
        await self._end()
        return self.history

    # What happens.

    def _begin(self, event: ScriptedEvent) -> None:
        match event.action:
            case Action.JOIN:
                self._join(event.count, self._generation())
            case Action.LEAVE:
                self._leave(self._drawn(event.count))
            case Action.CRASH:
                self._crash(self._drawn(event.count))
            case Action.RESTART:
                self._last(self._restart(self._drawn(event.count)))
            case Action.BOUNCE:
                self._last(self._bounce(self._drawn(event.count)))
            case Action.ROLL:
                self._last(self._roll(event.count))
            case Action.GROW:
                self._hub.grow(len(self._hub.partition_ids()) + event.count)
                self._tell()

    def _last(self, what: Coroutine[object, object, None]) -> None:
        self._lasting.append(asyncio.create_task(what))

    def _drawn(self, count: int) -> list[Node]:
        return self._rng.sample(self._there, count)

    def _join(self, count: int, generation: str) -> None:
        for _ in range(count):
            name = f"p{len({node.owner_id for node in self._nodes}) + 1:02}"
            self._start(name, generation)
        self._tell()

    def _leave(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._there.remove(node)
            node.task = asyncio.create_task(self._stop(node, node.task))
        self._tell()

    def _crash(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._there.remove(node)
            node.line.cut()
            self.observer.served(self.now_s, node.owner_id, is_up=False)
        self._tell()

    async def _restart(self, nodes: Sequence[Node]) -> None:
        self._crash(nodes)
        await asyncio.sleep(RESTART_AFTER_S)
        for node in nodes:
            self._start(node.owner_id, node.generation)
        self._tell()

    async def _bounce(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node in self._there:
                node.task = asyncio.create_task(self._stop(node, node.task))
                await asyncio.wait([node.task])
                await asyncio.sleep(RESTART_AFTER_S)
                self._there.remove(node)
                self._start(node.owner_id, node.generation)
                await asyncio.sleep(self._script.config.load_balancing_interval.total_seconds())

    async def _roll(self, count: int) -> None:
        generation = str(max(int(node.generation) for node in self._nodes) + 1)
        for node in list(self._there[:count]):
            self._join(1, generation)
            await asyncio.sleep(self._script.config.load_balancing_interval.total_seconds())
            if node in self._there:
                self._leave([node])
                await asyncio.wait([node.task])

    def _generation(self) -> str:
        """The one of most who are there: who joins is one more of these."""
        ((generation, _),) = Counter(node.generation for node in self._there).most_common(1)
        return generation

    def _start(self, owner_id: str, generation: str) -> None:
        name = f"{self._script.seed}/{len(self._nodes)}"
        line = Line(
            self._make_store(),
            owner_id,
            observer=self.observer,
            latency=self._script.latency,
            rng=Random(f"line/{name}"),  # noqa: S311
        )
        rng = Random(f"processor/{name}")  # noqa: S311
        if self._habits is None:
            processor = self._make_ours(owner_id, generation, line, rng)
        else:
            processor = self._make_foreign(owner_id, self._habits, line, rng)
        node = Node(
            owner_id=owner_id,
            generation=generation,
            processor=processor,
            line=line,
            task=asyncio.create_task(processor.start()),
        )
        self._nodes.append(node)
        self._there.append(node)
        self.observer.served(self.now_s, owner_id, is_up=True)

    def _make_ours(
        self, owner_id: str, generation: str, line: Line, rng: Random
    ) -> EventProcessor | ForeignProcessor:
        return EventProcessor(
            source=MemoryEventSource(self._hub),
            store=line,
            handler=lambda: Probe(self, line),
            owner_id=owner_id,
            config=replace(
                self._script.config,
                generation=generation,
                keeps_ownership_on_stop=self._script.has_bounce,
            ),
            rng=rng,
        )

    def _make_foreign(
        self, owner_id: str, habits: Habits, line: Line, rng: Random
    ) -> EventProcessor | ForeignProcessor:
        async def on_events(partition_id: str, events: Sequence[ReceivedEvent]) -> None:
            await line.alive()
            self.handled(partition_id, events)

        return ForeignProcessor(
            source=MemoryEventSource(self._hub),
            store=line,
            on_events=on_events,
            owner_id=owner_id,
            habits=habits,
            interval=self._script.config.load_balancing_interval,
            expiration=self._script.config.ownership_expiration,
            rng=rng,
            clock=self.now,
            listed=lambda: [node.owner_id for node in self._there],
        )

    def handled(self, partition_id: str, events: Sequence[ReceivedEvent]) -> None:
        """A handler is through with these."""
        now, now_s = self.now(), self.now_s
        for event in events:
            self.observer.handled(now, now_s, partition_id, event)

    async def _stop(self, node: Node, starting: asyncio.Task[None]) -> None:
        await asyncio.wait([starting])
        await node.processor.stop()
        self.observer.served(self.now_s, node.owner_id, is_up=False)

    def _tell(self) -> None:
        members = frozenset(node.owner_id for node in self._there)
        self.observer.expects(self.now_s, members, self._hub.partition_ids())

    # What goes on meanwhile.

    async def _publish(self) -> None:
        lead_s = LEAD_INTERVALS * self._script.config.load_balancing_interval.total_seconds()
        begins_s = [at_s for at_s, _ in self._script.timed()]
        tick = 0
        while True:
            is_of_use = self.now_s - self.observer.changed_at_s <= lead_s or any(
                abs(self.now_s - begin_s) <= lead_s for begin_s in begins_s
            )
            partition_ids = self._hub.partition_ids()
            ticks = max(TICKS_MIN, -(-len(partition_ids) // PARTITIONS_PER_TICK_MAX))
            if is_of_use:
                for partition_id in partition_ids[tick % ticks :: ticks]:
                    self._hub.publish(b"", partition_id=partition_id)
            tick += 1
            await asyncio.sleep(TICK_S)

    async def _end(self) -> None:
        """Look at what was left undone, then let everybody go."""
        self.observer.is_watching = False
        for partition_id in self._hub.partition_ids():
            events = self._hub.events(partition_id)
            self.observer.ended(self.now(), self.now_s, partition_id, events)
        for task in self._lasting:
            task.cancel()
        for node in self._nodes:
            node.line.mend()
        stopping = [asyncio.create_task(self._stop(node, node.task)) for node in self._nodes]
        await asyncio.gather(*stopping, *self._lasting, return_exceptions=True)


def play(script: Script, make_account: StoreFactory, habits: Habits | None = None) -> History:
    """Play a script on virtual time; the same history for the same script.

    With *habits* by processors of another make: see ``eventproc.simulation.systems``.
    """

    async def main() -> History:
        return await World(script, make_account, habits).play()

    return run_virtual(main())

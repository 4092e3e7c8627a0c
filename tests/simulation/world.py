"""A group of real processors on virtual time, over one store and one hub.

Everything in it is what runs in production, but for the two ends: the store is the reference one
behind a faulty line, and the hub is the one in memory.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
    SourceError,
    StoreError,
)
from eventproc.models import (
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    OwnershipClaim,
    PartitionOwnership,
    WriteOutcome,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing import FaultyCheckpointStore, StoreFaults
from eventproc.testing.processes import Process
from tests.simulation.invariants import OPERATOR, Call, Invariants, Violation

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
START_AGAIN_AFTER_S = 2.0
"""How soon a supervisor starts a processor again that could not start."""

BUDGET_TOLERANCE_S = 0.01


@dataclass
class Behaviour:
    """How the handlers of a world behave; may change at any time."""

    seconds_per_event: float = 0.0
    failure_rate: float = 0.0


class Counting(PartitionHandler):
    """Counts what it handled in its state, event by event, and tells the invariants."""

    def __init__(self, world: "World", process: Process, owner_id: str) -> None:
        self._world = world
        self._process = process
        self._owner_id = owner_id

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Take its time for each event, and fail as often as it shall."""
        world = self._world
        call = Call(process=self._process, owner_id=self._owner_id, context=context)
        world.invariants.begun(world.now_s, call, list(events))
        try:
            for event in events:
                context.state = str(int(context.state or b"0") + 1).encode()
                await asyncio.sleep(world.behaviour.seconds_per_event)
                if world.rng.random() < world.behaviour.failure_rate:
                    raise RuntimeError("failed on purpose")
                world.invariants.done(context.partition_id, event)
                if world.rng.random() < world.checkpoint_rate:
                    await context.checkpoint(event)
        finally:
            world.invariants.ended(call)


class Line(FaultyCheckpointStore):
    """The faulty line of one processor to the store, where every question is seen."""

    def __init__(self, world: "World", owner_id: str, rng: Random) -> None:
        super().__init__(Ledger(world, owner_id), rng)
        self._world = world
        self._owner_id = owner_id

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Show the claims to the invariants before they meet their fates."""
        world = self._world
        world.invariants.asked(world.now_s, self._owner_id, list(claims), world.live_records())
        return await super().claim_ownership(group, claims)


class Ledger(MemoryCheckpointStore):
    """The store itself, where every write that takes effect is seen."""

    def __init__(self, world: "World", owner_id: str) -> None:
        super().__init__(world.account)
        self._world = world
        self._owner_id = owner_id

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Show what was written to the invariants; one claim at a time comes through a line."""
        (claim,) = claims
        await self._turn(group)
        before = self._world.records().ownership_by_partition.get(claim.partition_id)
        result = self._claim(self._world.records().ownership_by_partition, claim)
        if result.outcome is WriteOutcome.WON and result.ownership is not None:
            self._world.invariants.owned(
                self._world.now_s, self._owner_id, before, result.ownership
            )
        return [result]

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Show what was written to the invariants."""
        result = await super().update_checkpoint(group, update)
        if result.outcome is WriteOutcome.WON:
            self._world.invariants.checkpointed(self._world.now_s, update.replaces, update)
        return result


@dataclass(eq=False)
class Node:
    """One process with a processor in it."""

    owner_id: str
    process: Process
    processor: EventProcessor
    line: Line
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None

    @property
    def is_there(self) -> bool:
        """Whether it shall have its share: neither killed nor asked to leave."""
        return not self.process.is_killed and not self.leaving.is_set()


class World:
    """A hub, a store, a publisher, and processes that come and go."""

    def __init__(
        self,
        seed: int | str,
        *,
        partition_count: int,
        config: EventProcessorConfig,
        checkpoint_rate: float = 0.0,
        publish_every_s: float = 1.0,
    ) -> None:
        """*checkpoint_rate* is how often a handler asks for a checkpoint after an event."""
        self.rng = Random(f"world/{seed}")
        self.config = config
        self.checkpoint_rate = checkpoint_rate
        self.behaviour = Behaviour()
        self.faults = StoreFaults()
        self.nodes: list[Node] = []
        self.account = MemoryAccount(now=self.now)
        self.hub = MemoryHub(partition_count, clock=self.now)
        self.group = ConsumerGroup(
            fully_qualified_namespace=self.hub.namespace, eventhub_name=self.hub.name
        )
        self.invariants = Invariants(expiration=config.ownership_expiration)
        self._seed = seed
        self._drawn_count = 0
        self._publish_every_s = publish_every_s
        self._publisher = asyncio.create_task(self._publish())

    # What it looks like.

    @property
    def now_s(self) -> float:
        """Virtual seconds since the beginning."""
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """The store's and the hub's clock."""
        return BEGIN + timedelta(seconds=self.now_s)

    def records(self):
        """What the store holds now, read without asking it."""
        return self.account.records(self.group)

    def live_records(self) -> dict[str, PartitionOwnership]:
        """The records that name an owner and are not expired."""
        return {
            ownership.partition_id: ownership
            for ownership in self.records().ownership_by_partition.values()
            if ownership.owner_id is not None
            and self.now() - ownership.last_modified <= self.config.ownership_expiration
        }

    def owner_by_partition(self) -> dict[str, str | None]:
        """Who owns what by a record that is not expired."""
        return {p: record.owner_id for p, record in self.live_records().items()}

    @property
    def there(self) -> list[Node]:
        """The nodes that shall have a share."""
        return [node for node in self.nodes if node.is_there]

    def node(self, owner_id: str) -> Node:
        """The newest node of this name."""
        return next(node for node in reversed(self.nodes) if node.owner_id == owner_id)

    def owned_counts(self) -> dict[str, int]:
        """How many partitions each node that is there has by the store's records."""
        owners = list(self.owner_by_partition().values())
        return {node.owner_id: owners.count(node.owner_id) for node in self.there}

    @property
    def is_balanced(self) -> bool:
        """Whether every partition is owned and served, by nodes that are there, evenly."""
        if any(n.leaving.is_set() and n.task and not n.task.done() for n in self.nodes):
            return False  # Somebody is about to give away what it has.
        counts = self.owned_counts()
        served = sum(len(node.processor.statistics().pumps) for node in self.there)
        return (
            sum(counts.values()) == served == len(self.hub.partition_ids())
            and max(counts.values()) - min(counts.values()) <= 1
        )

    @property
    def is_all_handled(self) -> bool:
        """Whether every event that was published was handled."""
        handled = self.invariants.handled
        return all(
            p in handled and handled[p][event.sequence_number]
            for p in self.hub.partition_ids()
            for event in self.hub.events(p)
        )

    # What happens in it.

    def start(self, owner_id: str) -> Node:
        """Start a process with a processor of this name in it."""
        self._drawn_count += 1
        name = f"{self._seed}/{self._drawn_count}/{owner_id}"
        process = Process(owner_id)
        line = Line(self, owner_id, Random(f"line/{name}"))
        line.faults = self.faults
        processor = EventProcessor(
            source=MemoryEventSource(self.hub),
            store=line,
            handler=lambda: Counting(self, process, owner_id),
            owner_id=owner_id,
            config=self.config,
            rng=Random(f"processor/{name}"),
        )
        node = Node(owner_id=owner_id, process=process, processor=processor, line=line)
        node.task = process.spawn(self._run(node))
        self.nodes.append(node)
        self.invariants.note(self.now_s, "started", owner_id)
        return node

    async def _run(self, node: Node) -> None:
        """What the process does: start, serve, and stop when it is asked to."""
        while True:
            try:
                await node.processor.start()
            except (StoreError, SourceError):
                if node.leaving.is_set():
                    return
                await asyncio.sleep(START_AGAIN_AFTER_S)
            else:
                break
        await node.leaving.wait()
        begun_s, was_well = self.now_s, self._is_well(node)
        try:
            await node.processor.stop()
        except Exception as error:  # noqa: BLE001 - whatever ended it must not have
            self.invariants.report(self.now_s, "failed", f"{node.owner_id}: {error!r}")
        took_s = self.now_s - begun_s
        self.invariants.note(self.now_s, "stopped", node.owner_id)
        if was_well and self._is_well(node):
            self._check_left(node)
        if took_s > self.config.shutdown_timeout.total_seconds() + BUDGET_TOLERANCE_S:
            self.invariants.report(self.now_s, "budget", f"{node.owner_id} stopped in {took_s} s")

    def _is_well(self, node: Node) -> bool:
        """Whether it reaches the store in time, and is always told."""
        faults = node.line.faults
        is_slow = faults.delay_max > timedelta(seconds=0.5)
        return not (is_slow or faults.silence or faults.throttle_rate or node.line.is_out)

    def _check_left(self, node: Node) -> None:
        """Who stopped owns nothing any more."""
        left = [p for p, owner_id in self.owner_by_partition().items() if owner_id == node.owner_id]
        if left:
            self.invariants.report(self.now_s, "left", f"{node.owner_id} still has {left}")

    def leave(self, node: Node) -> None:
        """Ask a process to stop in good order."""
        self.invariants.note(self.now_s, "leaves", node.owner_id)
        node.leaving.set()

    def crash(self, node: Node) -> None:
        """End a process without a word."""
        self.invariants.note(self.now_s, "crashed", node.owner_id)
        node.process.kill()

    def set_faults(self, faults: StoreFaults) -> None:
        """Let every line behave like this from now on."""
        self.faults = faults
        for node in self.nodes:
            node.line.faults = faults

    async def write_as_operator(self, partition_id: str) -> None:
        """Write a checkpoint again as it stands, as another program may."""
        async with Ledger(self, OPERATOR) as store:
            found = await store.read_checkpoint(self.group, partition_id)
            if found is None or found.offset is None or found.sequence_number is None:
                return
            await store.update_checkpoint(
                self.group,
                CheckpointUpdate(
                    partition_id=partition_id,
                    offset=found.offset,
                    sequence_number=found.sequence_number,
                    replaces=found,
                    writer=OPERATOR,
                ),
            )

    async def _publish(self) -> None:
        number = 0
        while True:
            for partition_id in self.hub.partition_ids():
                if self.rng.random() < 0.5:
                    number += 1
                    self.hub.publish(str(number).encode(), partition_id=partition_id)
            await asyncio.sleep(self._publish_every_s)

    # How it goes on and ends.

    async def until(self, what: str, within_s: float) -> float:
        """Wait until a property of the world holds; return how long it took."""
        begun_s = self.now_s
        while not getattr(self, what):
            if self.now_s - begun_s > within_s:
                raise Violation(f"not {what} within {within_s} s: {self.describe()}")
            await asyncio.sleep(0.1)
        return self.now_s - begun_s

    async def rest(self, intervals: int) -> None:
        """Let time pass, in which nothing may move."""
        begun_s = self.now_s
        await asyncio.sleep(intervals * self.config.load_balancing_interval.total_seconds())
        if self.invariants.moved_at_s > begun_s:
            raise Violation(f"moved at {self.invariants.moved_at_s} s, with nothing to do")

    def stop_publishing(self) -> None:
        """Let the hub be read to its end."""
        self._publisher.cancel()

    async def end(self) -> None:
        """Stop everybody in good order, then let the dead go, too."""
        self.stop_publishing()
        stopping = [node for node in self.nodes if not node.process.is_killed]
        for node in stopping:
            self.leave(node)
        tasks = [node.task for node in stopping if node.task is not None]
        if tasks:
            await asyncio.wait(tasks)
        left = {o.owner_id for o in self.records().ownership_by_partition.values()} - {None}
        killed = {node.owner_id for node in self.nodes if node.process.is_killed}
        if left - killed:
            self.invariants.report(self.now_s, "left", f"{sorted(left)} stand in the records")
        self._check()

    def bury(self) -> None:
        """Let what was killed run to its end, so that nothing is left behind."""
        for node in self.nodes:
            if node.process.is_killed:
                node.process.bury()
                if node.task is not None:
                    node.task.cancel()

    def _check(self) -> None:
        if self.invariants.violations:
            raise Violation("\n".join(self.invariants.violations[:10]))

    def describe(self) -> str:
        """Who has what, for a message."""
        with suppress(Exception):
            return f"{self.owner_by_partition()} {self.owned_counts()}"
        return "nobody"

"""A group of real processors on virtual time, over one store and one hub.

Only the two ends differ from production: the store is the one in memory behind a faulty
connection, and the hub is in memory.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from random import Random

from checkpointstores.memory import MemoryAccount
from eventproc import (
    ConfigurationError,
    DeadLetter,
    DeadLetterError,
    DeadLetterSink,
    DuplicateOwnerError,
    EventProcessor,
    EventProcessorConfig,
    PartitionHandler,
    ReceivedEvent,
    ResourceProcessor,
    SourceError,
    StoreError,
)
from eventproc.dead_letters import FunctionDeadLetterSink
from eventproc.models import LoadBalancingStrategy
from eventproc.testing import StoreFaults
from eventproc.testing._processes import Process, Wire
from tests.simulation.actor import Actor
from tests.simulation.azure.processor import ClientProfile, ForeignProcessor
from tests.simulation.checked_store import CheckedConnection, CheckedStore
from tests.simulation.handlers import Behaviour, CountingHandler
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.nodes import CheckedNode
from tests.simulation.operators import Operator
from tests.simulation.view import GroupView

START_AGAIN_AFTER_S = 2.0
"""Seconds until a supervisor restarts a processor that could not start, or that ended."""

BUDGET_TOLERANCE_S = 0.01

POLL_S = 0.5
"""Seconds between two checks of whether a world has recovered."""

CLOCK_OFFSET_MAX_S = 1e6
CLOCK_RATE_MAX = 0.05


class World(GroupView):
    """A hub, a store, a publisher, and processes that start and end."""

    invariants_class = Invariants

    def __init__(
        self,
        seed: int | str,
        *,
        partition_count: int,
        config: EventProcessorConfig,
        publish_every_s: float = 1.0,
        clock_rate_max: float = 0.0,
    ) -> None:
        """*clock_rate_max*: greatest deviation of a clock's rate from 1, also of the store's."""
        self.rng = Random(f"world/{seed}")
        self.config = config
        self.behaviour = Behaviour(kill=self._die)
        self.faults = StoreFaults()
        self.nodes: list[CheckedNode] = []
        self.wire = Wire()
        super().__init__(partition_count)
        self.seed = seed
        self._drawn_count = 0
        self._clock_rate_max = clock_rate_max
        self.store_rate = self._draw_rate()
        self._publish_every_s = publish_every_s
        self.account = MemoryAccount(now=self.store_now)
        self.invariants = self.invariants_class(
            expiration=config.ownership_expiration,
            handoff_timeout=config.handoff_timeout,
            now_s=lambda: self.wire.loop.now_s,
            is_live=self.is_live,
            claims_singly=config.load_balancing_strategy is LoadBalancingStrategy.BALANCED,
        )
        self.operator = Operator(self.account, self.group, self.invariants)
        self._publisher = asyncio.create_task(self._publish())

    def _draw_rate(self) -> float:
        return 1 + self.rng.uniform(-1, 1) * self._clock_rate_max

    def make_handler(self, actor: Actor) -> PartitionHandler:
        """Make a handler for a partition that one of its processes serves."""
        return CountingHandler(actor, self.behaviour, self.invariants, self.rng)

    def make_sink(self, actor: Actor) -> DeadLetterSink:
        """Make a sink that is slow, and fails half of the time."""

        async def take(letter: DeadLetter) -> None:
            await asyncio.sleep(self.rng.uniform(0, 2))
            if self.rng.random() < 0.5:
                raise DeadLetterError("failed on purpose")
            self.invariants.dead_lettered(actor, letter.partition_id, letter.event)

        return FunctionDeadLetterSink(take)

    # Processors.

    def start(
        self, owner_id: str, *, is_supervised: bool = True, deployment_id: str = ""
    ) -> CheckedNode:
        """Start a process with an ``EventProcessor``."""
        lets_go = self.config.load_balancing_strategy.lets_go
        facts = self.facts_of(owner_id)
        process, connection, rng = self._prepare(owner_id, hands_over=lets_go)
        actor = connection.actor
        processor = EventProcessor(
            source=self.make_source(),
            store=connection,
            handler=lambda: self.make_handler(actor),
            owner_id=owner_id,
            config=self.config_of(facts, deployment_id),
            rng=rng,
            identity_bits=rng.getrandbits,
            dead_letters=self.make_sink(actor),
            clock=process.boot_s,
        )
        node = self._add(process, processor, connection)
        node.facts, node.deployment_id = facts, deployment_id
        node.run(self._run(node, processor, is_supervised=is_supervised))
        return node

    def start_foreign(self, owner_id: str, profile: ClientProfile) -> CheckedNode:
        """Start a process with a foreign member."""
        self.invariants.is_mixed = True
        process, connection, rng = self._prepare(owner_id, is_foreign=True)
        processor = ForeignProcessor(
            source=self.make_source(),
            store=connection,
            on_events=self._handle_as_foreign,
            owner_id=owner_id,
            profile=profile,
            config=self.config,
            rng=rng,
            clock=self.store_now,
        )
        node = self._add(process, processor, connection)
        node.run(self._run_foreign(node, processor))
        return node

    def _prepare(
        self, owner_id: str, *, hands_over: bool = False, is_foreign: bool = False
    ) -> tuple[Process, CheckedConnection, Random]:
        """Make a process, a connection to the store and a random generator for a processor."""
        self._drawn_count += 1
        name = f"{self.seed}/{self._drawn_count}/{owner_id}"
        process = Process(
            owner_id,
            began_s=self.now_s,
            clock_s=self.rng.uniform(0, CLOCK_OFFSET_MAX_S),
            rate=self._draw_rate(),
        )
        actor = Actor(owner_id, process, hands_over=hands_over, is_foreign=is_foreign)
        actor.began_s = self.now_s
        store = CheckedStore(self.account, actor, self.invariants)
        connection = CheckedConnection(store, Random(f"line/{name}"), self.wire)
        connection.faults = self.faults
        return process, connection, Random(f"processor/{name}")

    def _add(
        self,
        process: Process,
        processor: EventProcessor | ResourceProcessor | ForeignProcessor,
        connection: CheckedConnection,
    ) -> CheckedNode:
        node = CheckedNode(
            owner_id=process.name,
            process=process,
            processor=processor,
            connection=connection,
            actor=connection.actor,
        )
        self.nodes.append(node)
        self.invariants.note("started", node.owner_id)
        return node

    async def _handle_as_foreign(self, partition_id: str, events: Sequence[ReceivedEvent]) -> None:
        self.invariants.note(f"{partition_id} gets {events[0].sequence_number}", "a foreign member")
        for event in events:
            self.invariants.done(partition_id, event)

    async def _run_foreign(self, node: CheckedNode, processor: ForeignProcessor) -> None:
        while not node.leaving.is_set():
            try:
                await processor.start()
            except (StoreError, SourceError):
                await asyncio.sleep(START_AGAIN_AFTER_S)
                continue
            await node.leaving.wait()
            await processor.stop()
            self.invariants.note("stopped", node.owner_id)

    async def _run(
        self,
        node: CheckedNode,
        processor: EventProcessor | ResourceProcessor,
        *,
        is_supervised: bool,
    ) -> None:
        """Start the processor, wait until it should stop, and stop it."""
        while not node.leaving.is_set():
            try:
                await processor.start()
            except DuplicateOwnerError:
                self._end_by_itself(node, is_supervised=is_supervised)
                return
            except (StoreError, SourceError, ConfigurationError):
                await asyncio.sleep(START_AGAIN_AFTER_S)
                continue
            node.has_started = True
            await _until_either(node.leaving.wait(), processor.finished())
            if await self._stop(node):
                self._end_by_itself(node, is_supervised=is_supervised)
            return

    async def _stop(self, node: CheckedNode) -> bool:
        """Stop the processor; return whether it had ended because its owner id is taken."""
        time = asyncio.get_running_loop().time
        began_s, was_well, is_duplicate = time(), self._is_well(node), False
        pause_count = node.process.pause_count
        stops_unasked = not node.leaving.is_set()
        try:
            await node.processor.stop()
        except DuplicateOwnerError:
            is_duplicate = True
        except Exception as error:  # noqa: BLE001 - any error is a violation
            self.invariants.report("failed", f"{node.owner_id}: {error!r}")
        took_s = time() - began_s
        self.invariants.note("stopped", node.owner_id)
        if stops_unasked and not is_duplicate:
            self.invariants.report("failed", f"{node.owner_id} ended without a reason")
        if was_well and self._is_well(node) and not is_duplicate:
            self._check_left(node)
        budget_s = self.config.shutdown_timeout.total_seconds() + BUDGET_TOLERANCE_S
        if took_s > budget_s and node.process.pause_count == pause_count:
            self.invariants.report("budget", f"{node.owner_id} stopped in {took_s} s")
        return is_duplicate

    def _end_by_itself(self, node: CheckedNode, *, is_supervised: bool) -> None:
        """Record that its owner id was taken; a supervisor restarts it as after any end."""
        node.is_over = True
        self.invariants.note("refused", node.owner_id)
        if is_supervised:
            self.wire.after(START_AGAIN_AFTER_S, self._start_again, node)

    def _start_again(self, node: CheckedNode) -> None:
        names = {other.owner_id for other in self.there}
        if node.owner_id not in names and not node.leaving.is_set():
            self.start(node.owner_id, deployment_id=node.deployment_id)

    def _is_well(self, node: CheckedNode) -> bool:
        """Whether its requests are answered in time, and its handler's calls can be cancelled."""
        faults = node.connection.faults
        is_slow = faults.delay_max > timedelta(seconds=0.5)
        is_lossy = faults.silence or faults.throttle_rate or faults.stale_rate
        is_lossy = is_lossy or node.connection.fate is not None
        is_kept = self.config.static_membership or node.actor.is_foreign
        is_out, is_deferred = node.connection.is_out, self.behaviour.ever_ignored_cancellation
        return not (is_slow or is_lossy or is_out or is_deferred or is_kept)

    def _check_left(self, node: CheckedNode) -> None:
        """Check that a stopped processor owns nothing."""
        left = [
            p
            for p, owner_id in self.owner_by_partition().items()
            if owner_id == node.owner_id
            and self.invariants.is_held(p, owner_id)
            and not any(
                o.owner_id == owner_id for o in self.nodes if o is not node and not o.is_gone
            )
        ]
        if left:
            self.invariants.report("left", f"{node.owner_id} still has {left}")

    def leave(self, node: CheckedNode) -> None:
        """Ask a process to stop gracefully."""
        self.invariants.note("leaves", node.owner_id)
        node.leaving.set()

    def crash(self, node: CheckedNode) -> None:
        """Kill a process."""
        self.invariants.note("crashed", node.owner_id)
        node.process.kill()

    def _die(self, actor: Actor) -> None:
        """Kill the process of an actor; its supervisor restarts it."""
        for node in self.nodes:
            if node.actor is actor:
                self.crash(node)
                self.wire.after(START_AGAIN_AFTER_S, self._start_again, node)

    def set_faults(self, faults: StoreFaults) -> None:
        """Set the faults of every connection."""
        self.faults = faults
        if faults.stale_rate:
            self.invariants.is_membership_visible = False
        for node in self.nodes:
            node.connection.faults = faults

    async def _publish(self) -> None:
        number = 0
        while True:
            for partition_id in self.hub.partition_ids():
                if self.rng.random() < 0.5:
                    number += 1
                    self.hub.publish(str(number).encode(), partition_id=partition_id)
            await asyncio.sleep(self._publish_every_s)

    # Waiting and end.

    async def until(self, what: str, within_s: float) -> float:
        """Wait until a property of the world holds; return how long it took."""
        began_s = self.now_s
        while not getattr(self, what):
            if self.now_s - began_s > within_s:
                raise Violation(f"not {what} within {within_s} s: {self.describe()}")
            await asyncio.sleep(POLL_S)
        return self.now_s - began_s

    async def until_gone(self, node: CheckedNode) -> None:
        """Wait until a node that leaves has left, or is killed over it."""
        while not node.is_gone:  # noqa: ASYNC110 - the task of a killed one never ends
            await asyncio.sleep(POLL_S)

    async def rest(self, intervals: int) -> None:
        """Let time pass, during which no partition may move."""
        began_s = self.now_s
        await asyncio.sleep(intervals * self.config.load_balancing_interval.total_seconds())
        if self.invariants.moved_at_s > began_s:
            raise Violation(f"moved at {self.invariants.moved_at_s} s, with nothing to do")

    def stop_publishing(self) -> None:
        """Stop publishing, so that processors can reach the end of the hub."""
        self._publisher.cancel()

    async def end(self) -> None:
        """Stop every processor gracefully, then check the records that they left."""
        self.stop_publishing()
        self.behaviour.deadly.clear()
        for node in self.nodes:
            node.leaving.set()
        stopping = [node for node in self.nodes if not node.is_gone]
        was_well = all(self._is_well(node) for node in stopping)
        for node in stopping:
            node.process.break_at = 0
            node.process.resume()
            self.leave(node)
        if stopping:
            await asyncio.wait([node.task for node in stopping])
        left = {
            str(o.owner_id)
            for p, o in self.live_records().items()
            if self.invariants.is_held(p, str(o.owner_id))
        }
        left &= {node.owner_id for node in stopping}
        left -= {node.owner_id for node in self.nodes if node.process.is_killed}
        if was_well and left:
            self.invariants.report("left", f"{sorted(left)} are still owners")
        self.check()

    def check(self) -> None:
        """Raise the collected violations."""
        if self.invariants.violations:
            raise Violation("\n".join(self.invariants.violations[:10]))

    @contextmanager
    def played(self) -> Iterator[None]:
        """Play a world in the block: a violation has those that were collected, too."""
        try:
            yield
        except Violation as violation:
            found = [*self.invariants.violations[:10], str(violation)]
            raise Violation("\n".join(dict.fromkeys(found))) from violation
        finally:
            self.stop_publishing()
            self.clean_up()

    def clean_up(self) -> None:
        """Run killed processes to their end, to clean up."""
        for node in self.nodes:
            if node.process.is_killed:
                node.process.run_out()
                node.task.cancel()

    def describe(self) -> str:
        """Describe owners and served partitions, for a message."""
        with suppress(Exception):
            served = {node.owner_id: node.served_count for node in self.there}
            return f"{self.owner_by_partition()} served {served}"
        return "no processors"


async def _until_either(*ends: Coroutine[object, object, object]) -> None:
    waits = [asyncio.ensure_future(end) for end in ends]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()

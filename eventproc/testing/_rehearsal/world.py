"""Plays one plan: hosts with real processors and the user's handler, on virtual time."""

import asyncio
import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.handler import HandlerFactory, PartitionContext, PartitionHandler
from eventproc.errors import SourceError, StoreError
from eventproc.models import ConsumerGroup, OwnershipClaim, ReceivedEvent
from eventproc.sources.memory import MemoryHub
from eventproc.testing._harness.handlers import HandlerMonitor
from eventproc.testing._harness.harness import HarnessDeadLetters, Owner, abandon
from eventproc.testing._harness.record import HandlerCall, Record
from eventproc.testing._processes import Wire, run_processes, running_loop
from eventproc.testing._rehearsal.application import Application
from eventproc.testing._rehearsal.database import Tables
from eventproc.testing._rehearsal.fakes import Fake
from eventproc.testing._rehearsal.plan import Fault, Kind, Plan

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
RESTART_S: Final = 2.0
POLL_S: Final = 1.0
ENOUGH_S: Final = 1200.0
"""After the last fault every event is handled within this time, or never."""

AFTERMATH_S: Final = 30.0
"""How long hosts run on when every event is handled: what is under way then is seen, too."""

POISON: Final = b"\x00\xff poison"

Place: TypeAlias = tuple[str, int]
"""A partition and the sequence number of an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An effect, and who caused it."""

    at_s: float
    owner_id: str
    what: str
    during: Place | None
    """The first event of the newest call of the handler by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What is rehearsed."""

    application: Application
    fakes: Sequence[Fake]
    event: Callable[[int], tuple[str, bytes]]
    """Makes the key and the body of the event with this number."""

    config: EventProcessorConfig


class World(Record):
    """One rehearsal; as the record of its handlers it knows when their calls begin and end."""

    def __init__(
        self,
        piece: Piece,
        plan: Plan,
        tables: Mapping[str, Tables] | None = None,
    ) -> None:
        """Build it on the running loop; *tables* are what databases have at its beginning."""
        self._loop = running_loop()
        self._loop.run_in_executor = piece.application.refuse_threads  # type: ignore[assignment, method-assign]
        super().__init__(now=self._now, now_s=self._loop.time)
        self._piece, self._plan, config = piece, plan, piece.config
        self._config = replace(
            config,
            uses_store_thread=False,
            batch_size_max=min(plan.batch_size_max, config.batch_size_max),
        )
        self.hub = MemoryHub(plan.partition_count, clock=self._now)
        self.group = ConsumerGroup(
            fully_qualified_namespace=self.hub.namespace, eventhub_name=self.hub.name
        )
        self._account = MemoryAccount(now=self._now)
        self._letters = HarnessDeadLetters(now=self._now)
        self._monitor = HandlerMonitor(record=self, is_dead=self._is_dead, kill=self.died)
        self._hosts: dict[str, Owner] = {}
        self._moments = 0
        self._pending = 0
        self._is_over = False
        self.is_complete = False
        """Whether every event was handled or given up in time."""

        self._steals: list[asyncio.Task[None]] = []
        self._wire = Wire()
        self.effects: list[Effect] = []
        self.tables = {target: Tables(found.content) for target, found in (tables or {}).items()}
        self.repeated: set[object] = set()
        self.told: list[tuple[str, str]] = []
        """The faults as they came about, and who took over, in words; each with its partition, if
        it is of one."""

        self._opener_by_partition: dict[str, str] = {}
        self.key_by_place: dict[Place, str] = {}

    def _now(self) -> datetime:
        return BEGIN + timedelta(seconds=self._loop.time())

    def _is_dead(self, owner_id: str) -> bool:
        return self._is_over or self._hosts[owner_id].process.is_killed

    async def play(self) -> None:
        """Play the plan to its end."""
        for _ in range(self._plan.host_count):
            self._start()
        await self._publish()
        until_s = self.now_s() + ENOUGH_S
        is_manual = self._config.checkpoint_policy.interval is None
        while not self._is_done() and self.now_s() < until_s:
            await asyncio.sleep(AFTERMATH_S if is_manual else POLL_S)
            if is_manual and not self._pending:
                await self._write_last()
        self.is_complete = self._is_done()
        await asyncio.sleep(AFTERMATH_S)
        self._is_over = True
        await abandon(list(self._hosts.values()))

    async def _publish(self) -> None:
        for number in self._plan.events:
            key, body = self._piece.event(number)
            body = POISON if number == self._plan.poison else body
            partition_id, event = self.hub.publish(body, partition_key=key)
            self.key_by_place[partition_id, event.sequence_number] = key
            if self._plan.gap_s:
                await asyncio.sleep(self._plan.gap_s)

    async def _write_last(self) -> None:
        """Let all hosts stop: then a manual policy writes the checkpoints that are left."""
        stops = [h.process.spawn(h.processor.stop()) for h in self._hosts.values() if h.is_alive]
        if stops:  # A host that is killed meanwhile does not end its stop.
            await asyncio.wait(stops, timeout=AFTERMATH_S)
        if not self._is_done():  # A host died with the last events: another one handles them.
            self._start()

    def _is_done(self) -> bool:
        """Whether no fault is under way, and every event is handled or given up."""
        if self._piece.application.is_refused:
            return True
        stored = self._account.records(self.group).checkpoint_by_partition
        for partition_id in self.hub.partition_ids():
            end = self.hub.partition_properties(partition_id).last_enqueued_sequence_number
            checkpoint = stored.get(partition_id)
            position = -1 if checkpoint is None else checkpoint.sequence_number
            if position is None or position < end:
                return False
        return not self._pending

    def state_by_partition(self) -> dict[str, bytes | None]:
        """Return the states that are stored with the checkpoints."""
        stored = self._account.records(self.group).checkpoint_by_partition
        return {partition_id: checkpoint.state for partition_id, checkpoint in stored.items()}

    def _start(self) -> str:
        owner_id = f"host-{len(self._hosts) + 1}"
        make = self._piece.application.make(self._piece.fakes, self, owner_id)
        host = self._hosts[owner_id] = Owner(
            owner_id,
            hub=self.hub,
            account=self._account,
            handler=lambda: self._make_handler(make, owner_id),
            dead_letters=self._letters,
            config=self._config,
        )
        host.process.spawn(self._run(host))
        return owner_id

    def _make_handler(self, make: HandlerFactory, owner_id: str) -> PartitionHandler:
        try:
            return self._monitor.make(make, owner_id)
        except Exception as error:
            self.last_error = error
            raise

    async def _run(self, host: Owner) -> None:
        while True:  # as a supervisor does
            try:
                await host.processor.start()
            except (StoreError, SourceError):
                await asyncio.sleep(RESTART_S)
            else:
                return

    async def _leave(self, host: Owner) -> None:
        try:
            await host.processor.stop()
        finally:
            if not self._is_over:  # Otherwise its tasks are being cancelled, and have to end.
                host.process.kill()  # it exits, whatever it still has under way
                self._later(RESTART_S, self._start)

    # What happens in the handlers.

    def opened(self, context: PartitionContext) -> None:
        """Note who takes a partition over."""
        super().opened(context)
        partition_id, owner_id = context.partition_id, context.owner_id
        if self._opener_by_partition.setdefault(partition_id, owner_id) != owner_id:
            self._opener_by_partition[partition_id] = owner_id
            self._tell(f"{owner_id} took over partition {partition_id}", partition_id)

    def began(self, context: PartitionContext, events: Sequence[ReceivedEvent]) -> HandlerCall:
        """Reach a moment: a call begins."""
        call = super().began(context, events)
        self._reach_in_call(call, "at the beginning of a call", "a call began")
        return call

    def ended(self, call: HandlerCall, context: PartitionContext) -> None:
        """Reach a moment: a call has done its work."""
        self._reach_in_call(call, "at the end of a call, before its checkpoint", "a call ended")
        super().ended(call, context)

    def _reach_in_call(self, call: HandlerCall, at: str, after: str) -> None:
        for fault in self._reach():
            if fault.kind is Kind.FAIL:
                self._tell(f"{call.owner_id} failed {at}", call.partition_id)
                raise RuntimeError("failed on purpose")
            self._strike(fault, call.owner_id, at, after)

    def steps(
        self, owner_id: str, name: str, carry_out: Callable[[], None]
    ) -> Generator[float, None, None]:
        """Carry out a request, with the faults of its moment."""
        faults = self._reach()
        yield from self._faults_of(owner_id, name, [f for f in faults if f.is_before])
        yield self._plan.latency_s
        if not self._is_dead(owner_id):
            carry_out()
        yield from self._faults_of(owner_id, name, [f for f in faults if not f.is_before])
        yield self._plan.latency_s

    def _faults_of(
        self, owner_id: str, name: str, faults: Sequence[Fault]
    ) -> Generator[float, None, None]:
        for fault in faults:
            if fault.kind is Kind.FAIL:
                text = f"{name}() failed" if fault.is_before else f"{name}() was not answered"
                self._tell(f"{text} on {owner_id}")
                raise ConnectionError(f"{text}, on purpose")
            if fault.kind is Kind.SLOW:
                self._tell(f"{name}() took {fault.span_s:g} s on {owner_id}")
                yield fault.span_s
                continue
            done = "before it was carried out" if fault.is_before else "after it was carried out"
            self._strike(fault, owner_id, f"inside {name}(), {done}", f"{name}() began")
            yield 0.0  # a killed or frozen process does not come back
            if self._is_dead(owner_id):
                raise asyncio.CancelledError

    def happened(self, owner_id: str, effect: str) -> None:
        """Record an effect."""
        call = self.calls[-1] if self.calls else None
        during = None if call is None else (call.partition_id, call.events[0].sequence_number)
        self.effects.append(
            Effect(at_s=self.now_s(), owner_id=owner_id, what=effect, during=during)
        )
        self.add(owner_id, effect)

    # Faults.

    def _reach(self) -> Sequence[Fault]:
        """Return the faults of the moment that is reached now."""
        self._moments += 1
        return [fault for fault in self._plan.faults if fault.moment == self._moments]

    def _tell(self, what: str, partition_id: str = "") -> None:
        self.told.append((what, partition_id))
        self.lines.append(f"{self.now_s():12.3f}  {what}")

    def _strike(self, fault: Fault, owner_id: str, at: str, after: str) -> None:
        """Let a fault happen to a host, now or later."""
        if fault.delay_s:
            at = f"{fault.delay_s:g} s after {after}"
            self._later(fault.delay_s, self._happen, fault, owner_id, at)
        else:
            self._happen(fault, owner_id, at)

    def _later(self, seconds: float, function: Callable[..., object], *args: object) -> None:
        """Call a function later; until then the rehearsal is not over."""

        def call() -> None:
            self._pending -= 1
            if not self._is_over:
                function(*args)

        self._pending += 1
        self._wire.after(seconds, call)

    def _happen(self, fault: Fault, owner_id: str, at: str) -> None:
        host, span = self._hosts[owner_id], f"{fault.span_s:g} s"
        if not host.is_alive:
            return
        match fault.kind:
            case Kind.CRASH:
                self._tell(f"{owner_id} was killed {at}")
                self.died(owner_id)
                host.process.kill()
                self._wire.after(RESTART_S, self._start)
            case Kind.FREEZE:
                self._tell(f"{owner_id} froze for {span} {at}")
                host.process.pause()
                self._later(fault.span_s, host.process.resume)
            case Kind.LEAVE:
                self._tell(f"{owner_id} was asked to stop {at}")
                host.process.spawn(self._leave(host))
            case Kind.CUT_OFF:
                self._tell(f"the store did not answer {owner_id} for {span}, {at}")
                host.store.is_out = True
                self._later(fault.span_s, self._reconnect, host)
            case Kind.STEAL:
                self._later(0, self._begin_steal, owner_id, at)
            case Kind.JOIN:
                self._later(0, self._start)
                self._tell(f"another host joined, {at} on {owner_id}")
            case _:
                self._out(fault, span, at)

    def _reconnect(self, host: Owner) -> None:
        host.store.is_out = False

    def _out(self, fault: Fault, span: str, at: str) -> None:
        hosts = list(self._hosts.values())
        self._tell(f"{'store' if fault.moment % 2 else 'hub'} did not answer for {span}, {at}")
        if fault.moment % 2:
            for host in hosts:
                host.store.is_out = True
                self._later(fault.span_s, self._reconnect, host)
        else:
            self.hub.begin_outage()
            self._later(fault.span_s, self.hub.end_outage)

    def _begin_steal(self, owner_id: str, at: str) -> None:
        self._steals.append(self._loop.create_task(self._steal(owner_id, at)))

    async def _steal(self, owner_id: str, at: str) -> None:
        """Let another host claim a partition of this one without its consent."""
        records = self._account.records(self.group).ownership_by_partition
        held = [record for record in records.values() if record.owner_id == owner_id]
        others = [name for name, host in self._hosts.items() if host.is_alive and name != owner_id]
        if held:
            thief = others[0] if others else self._start()
            claim = OwnershipClaim(
                partition_id=held[0].partition_id, owner_id=thief, expected_etag=held[0].etag
            )
            self._tell(f"{thief} stole partition {claim.partition_id} from {owner_id} {at}")
            async with MemoryCheckpointStore(self._account) as store:
                await store.claim_ownership(self.group, [claim])


@contextmanager
def _quiet() -> Iterator[None]:
    """Log nothing: the faults are intended."""
    levels = {name: logging.getLogger(name).level for name in ("eventproc", "asyncio")}
    try:
        for name in levels:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def played(
    piece: Piece,
    plan: Plan,
    tables: Mapping[str, Tables] | None = None,
) -> World:
    """Play a plan and return the world at its end.

    Raises:
        Refused: The handler does what no rehearsal can repeat.
    """

    async def play() -> World:
        world = World(piece, plan, tables)
        await world.play()
        return world

    with _quiet(), piece.application.watched():
        return run_processes(play())

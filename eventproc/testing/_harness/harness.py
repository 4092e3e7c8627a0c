"""A test harness for handlers, which injects crashes, moves and outages.

    def test_orders_are_counted_once_although_the_process_dies():
        with HandlerTestHarness(OrderHandler) as harness:
            harness.publish(b"first", b"second")
            harness.crash_call()
            harness.settle()
            assert harness.state() == b"2"

The processors are real, each in a simulated process; hub, store and dead letters are in memory, and
the clock is virtual.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from types import TracebackType
from typing import Final, Self, TypeVar

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc._base.settings import Count, checked
from eventproc._delivery.checks import check_handler
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.handler import HandlerFactory
from eventproc._runtime.processors import EventProcessor
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import DeadLetter, OwnershipClaim, ReceivedEvent
from eventproc.ports import DeadLetterSink
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing._faults import FaultyCheckpointStore
from eventproc.testing._harness.handlers import HandlerMonitor, InjectedFailure
from eventproc.testing._harness.record import Record
from eventproc.testing._harness.view import HarnessView
from eventproc.testing._processes import Process, ProcessLoop


class HarnessDeadLetters(MemoryDeadLetterSink):
    """Keeps letters in memory, with times by the harness's clock instead of the machine's."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._now = now
        self._given_up_at: dict[str, datetime] = {}

    async def store(self, letter: DeadLetter) -> None:
        """Keep the letter, with the time of the first attempt to store it."""
        given_up_at = self._given_up_at.setdefault(letter.letter_id, self._now())
        await super().store(replace(letter, given_up_at=given_up_at))
        del self._given_up_at[letter.letter_id]


class Owner:
    """One processor in a simulated process, whose connection to the store can be cut."""

    def __init__(
        self,
        owner_id: str,
        *,
        hub: MemoryHub,
        account: MemoryAccount,
        handler: HandlerFactory,
        dead_letters: DeadLetterSink,
        config: EventProcessorConfig,
    ) -> None:
        chance = Random(owner_id)  # noqa: S311 - a test, no secrets
        self.owner_id = owner_id
        self.process = Process(owner_id)
        self.store = FaultyCheckpointStore(MemoryCheckpointStore(account), chance)
        self.processor = EventProcessor(
            source=MemoryEventSource(hub),
            store=self.store,
            handler=handler,
            dead_letters=dead_letters,
            owner_id=owner_id,
            config=config,
            rng=chance,
            identity_bits=chance.getrandbits,
        )

    @property
    def is_alive(self) -> bool:
        """Whether the process is neither killed nor frozen."""
        return not (self.process.is_paused or self.process.is_killed)


async def abandon(owners: Sequence[Owner]) -> None:
    """End every other task; those of the owners without any effect on the store."""
    for owner in owners:
        owner.store.is_out = True
        owner.process.is_killed = True
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    for owner in owners:
        owner.process.run_out()
    await asyncio.gather(*left, return_exceptions=True)


def undone(view: HarnessView, record: Record, alive: Sequence[Owner]) -> list[str]:
    """Return a text for each call and partition that is not settled; none if all are settled.

    A partition is settled when the owner in its record has an open handler for it, and has
    handled every event of the hub or given it up.
    """
    positions: dict[str, int | None] = {}
    stopped: set[str] = set()
    for owner in alive:
        statistics = owner.processor.statistics()
        stopped |= set(statistics.stopped)
        for pump in statistics.pumps:
            is_open = (owner.owner_id, pump.partition_id) in record.serving
            if is_open and view.owner_of(pump.partition_id) == owner.owner_id:
                positions[pump.partition_id] = pump.sequence_number
    living = {owner.owner_id for owner in alive}
    left = [
        f"call {call.number} is under way"
        for call in record.calls
        if not call.is_over and call.owner_id in living
    ]
    for partition_id in view.hub.partition_ids():
        end = view.hub.partition_properties(partition_id).last_enqueued_sequence_number
        position = positions.get(partition_id)
        if partition_id in stopped:
            left.append(f"the failure policy stopped partition {partition_id!r}")
        elif partition_id not in positions:
            left.append(f"its owner does not serve partition {partition_id!r}")
        elif position is None and view.due(partition_id):
            left.append(f"partition {partition_id!r}: none of its events is handled")
        elif position is not None and position < end:
            left.append(f"partition {partition_id!r} is handled up to {position} of {end}")
    return left


T = TypeVar("T")

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)

OUTCOME_DELAY_S: Final = 0.001
"""Seconds that virtual time passes beyond a due time, so that what is due has happened."""

LONG: Final = timedelta(minutes=10)
"""Long enough for the leases of a dead owner to expire, and for many attempts."""


class HandlerTestHarness(HarnessView):
    """Runs a handler over a hub in memory, on virtual time; a context manager.

    It begins with one owner, ``owner-1``. Inside a running event loop it works in a thread.

    Args:
        handler: As for ``EventProcessor``. While blocking functions run, virtual time stands still.
        partition_count: How many partitions the hub has.
        config: As for ``EventProcessor``.
        begin: The time at which the clock starts.
    """

    @checked
    def __init__(
        self,
        handler: HandlerFactory,
        *,
        partition_count: Count = 1,
        config: EventProcessorConfig | None = None,
        begin: datetime = BEGIN,
    ) -> None:
        self._config = replace(config or EventProcessorConfig(), uses_store_thread=False)
        check_handler(handler, key_concurrency=self._config.key_concurrency)
        self._factory, self._begin = handler, begin
        self._loop = ProcessLoop()
        self._loop.hold_while(self._is_thread_busy)
        self._enqueued_time: datetime | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._runner = asyncio.Runner(loop_factory=lambda: self._loop)
        self._account = MemoryAccount(now=lambda: self.now)
        self._owners: list[Owner] = []
        self._joined_count = 0
        self._rescue: asyncio.Task[str] | None = None
        self._is_store_out = False
        self._record = Record(now=lambda: self.now, now_s=self._loop.time)
        self._monitor = HandlerMonitor(record=self._record, is_dead=self._is_dead, kill=self._kill)
        self.dead_letter_sink = HarnessDeadLetters(now=lambda: self.now)
        """The sink for dead letters. Set its ``is_out`` to simulate an outage."""

        self.hub = MemoryHub(partition_count, clock=lambda: self._enqueued_time or self.now)
        """The hub, which injects faults: ``begin_outage``, ``break_links``, ``stall``, ``trim``."""

    def __enter__(self) -> Self:
        """Start the first owner."""
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="eventproc-harness")
        self._run(self._join())
        with suppress(AssertionError):  # do not wait: ``initialize`` may take long, or fail
            self.settle(timedelta(seconds=1))
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop every owner gracefully: handlers are closed with ``CloseReason.SHUTDOWN``."""
        try:
            self._run(self._end())
        finally:
            self._loop.hold_while(lambda: False)
            self._call(self._runner.close)
            if self._worker is not None:
                self._worker.shutdown()

    # --- events and faults ------------------------------------------------------------------------

    def publish(
        self,
        *bodies: bytes | str,
        partition_id: str | None = None,
        partition_key: str | None = None,
        properties: Mapping[str, object] | None = None,
        enqueued_time: datetime | None = None,
    ) -> Sequence[ReceivedEvent]:
        """Publish events, and return them. They are handled when virtual time passes.

        Args:
            bodies: One for each event; text is encoded as UTF-8.
            partition_id: The partition; if neither this nor a key is given, all in turn.
            partition_key: Events with the same key go to the same partition.
            properties: The properties of each event.
            enqueued_time: The hub's enqueued time; now if not given. It must not go back within
                a partition.
        """
        self._enqueued_time = enqueued_time
        try:
            return tuple(
                self.hub.publish(
                    body.encode() if isinstance(body, str) else body,
                    partition_id=partition_id,
                    partition_key=partition_key,
                    properties=properties,
                )[1]
                for body in bodies
            )
        finally:
            self._enqueued_time = None

    def advance(self, span: timedelta) -> None:
        """Let virtual time pass, plus a millisecond, so that everything due has happened."""
        if span < timedelta(0):
            raise ValueError(f"time cannot go back by {-span}")
        self._run(asyncio.sleep(span.total_seconds() + OUTCOME_DELAY_S))

    def settle(self, within: timedelta = LONG) -> None:
        """Let virtual time pass until every event is handled or given up.

        Raises:
            AssertionError: That takes longer than ``within``, usually because the handler keeps
                failing; its last error is the cause.
        """
        self._run(self._settle(within))

    def fail_call(
        self,
        number: int | None = None,
        error: Exception | None = None,
        *,
        is_after_work: bool = False,
    ) -> None:
        """Make a call of ``process_events`` fail.

        Args:
            number: Number of the call in ``calls``, from 1; the next call if not given.
            error: What it raises.
            is_after_work: Whether the handler runs first, so that its effects happen twice.
        """
        number = self._coming(number)
        default = RuntimeError(f"call {number} failed on purpose")
        self._monitor.injected_failures[number] = InjectedFailure(
            error=error or default, is_after_work=is_after_work
        )

    def crash_call(self, number: int | None = None) -> None:
        """Kill the owner at the end of a call: after the handler's work, before the call returns.

        ``number`` as for ``fail_call``. As after ``kill``, another owner starts if none is left.
        """
        self._monitor.injected_failures[self._coming(number)] = InjectedFailure(
            error=None, is_after_work=True
        )

    def kill(self, owner_id: str | None = None) -> None:
        """Kill an owner at this moment, as by SIGKILL: its handlers are not called again.

        Events after the last checkpoint are delivered again, after ``ownership_expiration``. If no
        owner is left, another one starts. Without an ``owner_id`` the oldest owner is killed.
        """
        self._kill(self._owner(owner_id).owner_id)
        self._run(asyncio.sleep(0))

    def freeze(self, owner_id: str | None = None) -> str:
        """Freeze an owner, as by SIGSTOP; return its id for ``thaw``."""
        owner = self._owner(owner_id)
        owner.process.pause()
        self._record.add(owner.owner_id, "is frozen")
        return owner.owner_id

    def thaw(self, owner_id: str) -> None:
        """Resume a frozen owner, as by SIGCONT."""
        self._run(self._thaw(owner_id))

    def join(self) -> str:
        """Start another owner; return its id.

        With several partitions the other owners soon hand over its share to it.
        """
        return self._run(self._join())

    def leave(self, owner_id: str | None = None) -> None:
        """Stop an owner gracefully: it hands over its partitions to the other owners."""
        self._run(self._leave(self._owner(owner_id)))

    def move(self, owner_id: str | None = None) -> str:
        """Start another owner and stop this one gracefully, as a deployment does.

        Returns the id of the new owner. No event is delivered twice.
        """
        owner = self._owner(owner_id)
        joined = self.join()
        self._run(self._leave(owner))
        return joined

    def steal(self, partition_id: str = "0") -> str:
        """Let another owner steal a partition; return its id.

        The former handler is closed with ``CloseReason.OWNERSHIP_LOST`` once its owner notices;
        events after the last checkpoint are delivered again. Without another owner, one starts.
        """
        return self._run(self._steal(partition_id))

    def resume(self, partition_id: str = "0") -> None:
        """Restart a partition that the failure policy stopped, or end a pause by the handler."""
        self._run(self._resume(partition_id))

    @contextmanager
    def store_outage(self) -> Iterator[None]:
        """Make the store unreachable for all owners while the block runs."""
        self._set_store_out(is_out=True)
        try:
            yield
        finally:
            self._set_store_out(is_out=False)

    @contextmanager
    def hub_outage(self) -> Iterator[None]:
        """Make the hub unreachable while the block runs; open receivers break."""
        self.hub.begin_outage()
        try:
            yield
        finally:
            self.hub.end_outage()

    @property
    def now(self) -> datetime:
        """The current virtual time, which hub and store use."""
        return self._begin + timedelta(seconds=self._loop.time())

    @property
    def owner_ids(self) -> Sequence[str]:
        """The owners that are neither killed nor frozen, oldest first."""
        return tuple(owner.owner_id for owner in self._owners if owner.is_alive)

    # --- implementation ---------------------------------------------------------------------------

    def _run(self, coroutine: Coroutine[object, object, T]) -> T:
        return self._call(partial(self._runner.run, coroutine))

    def _call(self, function: Callable[[], T]) -> T:
        return function() if self._worker is None else self._worker.submit(function).result()

    def _is_dead(self, owner_id: str) -> bool:
        return any(o.process.is_killed for o in self._owners if o.owner_id == owner_id)

    def _is_thread_busy(self) -> bool:
        return any(
            self._monitor.holds[owner.owner_id] > 0 for owner in self._owners if owner.is_alive
        )

    def _owner(self, owner_id: str | None) -> Owner:
        for owner in self._owners:
            if owner.is_alive and owner_id in (None, owner.owner_id):
                return owner
        raise self._record.failure(
            f"there is no owner {owner_id or 'left'}; owners: {self.owner_ids}"
        )

    def _coming(self, number: int | None) -> int:
        made = len(self._record.calls)
        if number is not None and number <= made:
            raise ValueError(f"call {number} was made already: there were {made} calls")
        return number or made + 1

    def _set_store_out(self, *, is_out: bool) -> None:
        self._is_store_out = is_out
        for owner in self._owners:
            owner.store.is_out = is_out

    async def _join(self) -> str:
        self._joined_count += 1
        owner_id = f"owner-{self._joined_count}"
        owner = Owner(
            owner_id,
            hub=self.hub,
            account=self._account,
            handler=lambda: self._monitor.make(self._factory, owner_id),
            dead_letters=self.dead_letter_sink,
            config=self._config,
        )
        owner.store.is_out = self._is_store_out
        self._owners.append(owner)
        self._record.add(owner.owner_id, "joins")
        await owner.process.spawn(owner.processor.start())
        return owner.owner_id

    async def _leave(self, owner: Owner) -> None:
        self._record.add(owner.owner_id, "leaves")
        await owner.process.spawn(owner.processor.stop())
        self._owners.remove(owner)

    async def _resume(self, partition_id: str) -> None:
        self._owner(self.owner_of(partition_id)).processor.resume(partition_id)

    async def _thaw(self, owner_id: str) -> None:
        frozen = [o for o in self._owners if o.process.is_paused and o.owner_id == owner_id]
        if not frozen:
            raise self._record.failure(f"there is no frozen owner {owner_id}")
        self._record.add(owner_id, "is thawed")
        frozen[-1].process.resume()

    def _kill(self, owner_id: str) -> None:
        owner = self._owner(owner_id)
        owner.process.kill()
        self._record.died(owner_id)
        if not self.owner_ids:
            # a new context: otherwise the task would belong to the killed process
            self._rescue = self._loop.create_task(self._join(), context=Context())

    async def _steal(self, partition_id: str) -> str:
        if partition_id not in self.hub.partition_ids():
            raise self._record.failure(f"there is no partition {partition_id}")
        victim_id = self.owner_of(partition_id)
        others = [owner_id for owner_id in self.owner_ids if owner_id != victim_id]
        thief_id = others[0] if others else await self._join()
        records = self._account.records(self._group).ownership_by_partition
        async with MemoryCheckpointStore(self._account) as store:
            claim = OwnershipClaim(
                partition_id=partition_id,
                owner_id=thief_id,
                expected_etag=records[partition_id].etag,
            )
            await store.claim_ownership(self._group, [claim])
        self._record.add(thief_id, f"partition {partition_id}: stolen from {victim_id}")
        return thief_id

    async def _settle(self, within: timedelta) -> None:
        try:
            async with asyncio.timeout(within.total_seconds()):
                while self._undone():
                    self._record.changed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(1):
                            await self._record.changed.wait()
                    await asyncio.sleep(OUTCOME_DELAY_S)
        except TimeoutError:
            what = "; ".join(self._undone())
            failure = self._record.failure(f"not settled after {within}: {what}")
            raise failure from failure.__cause__

    def _undone(self) -> Sequence[str]:
        return undone(self, self._record, [owner for owner in self._owners if owner.is_alive])

    async def _end(self) -> None:
        """Stop the live owners, then clean up."""
        stops = [o.process.spawn(o.processor.stop()) for o in self._owners if o.is_alive]
        results = await asyncio.gather(*stops, return_exceptions=True)
        await abandon(self._owners)
        for result in results:
            if isinstance(result, BaseException):
                raise result

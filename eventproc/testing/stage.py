"""A stage for handlers: what happens to them in production happens here, when the test says so.

    def test_orders_are_counted_once_although_the_process_dies():
        with HandlerStage(OrderHandler) as stage:
            stage.publish(b"first", b"second")
            stage.crash_call()
            stage.settle()
            assert stage.state() == b"2"

Everything on it is what runs in production, processors, pumps and all, but for the two ends: the
hub and the store are in memory. Time is virtual and passes only inside the stage's methods: as long
as a test does something else, nothing happens. Any test runner will do.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc.config import EventProcessorConfig
from eventproc.deadletters import MemoryDeadLetterSink
from eventproc.handler import HandlerFactory
from eventproc.models import OwnershipClaim, ReceivedEvent
from eventproc.sources.memory import MemoryHub
from eventproc.testing._stage_handlers import Mishap, Watch
from eventproc.testing._stage_owner import Owner, make_owner
from eventproc.testing._stage_record import Record
from eventproc.testing._stage_settling import undone
from eventproc.testing._stage_view import StageView
from eventproc.testing.processes import ProcessLoop

T = TypeVar("T")

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)

LOOK_S: Final = 0.001
"""How long after something was due one looks what came of it."""

LONG: Final = timedelta(minutes=10)
"""Long enough for an owner to be found dead, and for many attempts."""


class HandlerStage(StageView):
    """Runs a handler over a hub in memory, on virtual time; a context manager.

    It begins with one owner, ``owner-1``, who has every partition; what is published before that is
    there already. Inside a running event loop (an ``async def test_...``) it works in a thread.

    Args:
        handler: As for ``EventProcessor``. While ordinary functions run, time stands still.
        partition_count: How many partitions the hub has.
        config: As for ``EventProcessor``.
        begin: What the clock shows at first.
    """

    def __init__(
        self,
        handler: HandlerFactory,
        *,
        partition_count: int = 1,
        config: EventProcessorConfig | None = None,
        begin: datetime = BEGIN,
    ) -> None:
        self._factory = handler
        self._begin = begin
        self._config = replace(config or EventProcessorConfig(), uses_store_thread=False)
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
        self._watch = Watch(record=self._record, is_dead=self._is_dead, kill=self._kill)
        self.dead_letter_sink = MemoryDeadLetterSink()
        """Where letters go if the failure policy wants it; it can be ``is_out``."""

        self.hub = MemoryHub(partition_count, clock=lambda: self._enqueued_time or self.now)
        """The hub, to break it: ``begin_outage``, ``break_links``, ``stall``, ``trim``, ..."""

    def __enter__(self) -> Self:
        """Start the first owner."""
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="eventproc-stage")
        self._run(self._join())
        with suppress(AssertionError):  # ``initialize`` may take its time, or fail.
            self.settle(timedelta(seconds=1))
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop every owner in good order: handlers are closed with ``CloseReason.SHUTDOWN``."""
        try:
            self._run(self._end())
        finally:
            self._loop.hold_while(lambda: False)
            self._call(self._runner.close)
            if self._worker is not None:
                self._worker.shutdown()

    # --- what happens -----------------------------------------------------------------------------

    def publish(
        self,
        *bodies: bytes | str,
        partition_id: str | None = None,
        partition_key: str | None = None,
        properties: Mapping[str, object] | None = None,
        enqueued_time: datetime | None = None,
    ) -> Sequence[ReceivedEvent]:
        """Publish events, which are handled as soon as time passes; return them.

        Args:
            bodies: One for each event; text is encoded as UTF-8.
            partition_id: Where to; if neither this nor a key is given, to all in turn.
            partition_key: Events with one key go to one partition.
            properties: What the publisher attaches to each.
            enqueued_time: When the hub took them in; now if not given. It may not go back within
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
        """Let time pass, and a millisecond more: then all that was due in it has happened."""
        if span < timedelta(0):
            raise ValueError(f"time cannot go back by {-span}")
        self._run(asyncio.sleep(span.total_seconds() + LOOK_S))

    def settle(self, within: timedelta = LONG) -> None:
        """Let time pass until every event is dealt with, and no longer.

        Raises:
            AssertionError: that takes longer than ``within``, usually because the handler fails
                again and again; its newest error is the cause.
        """
        self._run(self._settle(within))

    def fail_call(
        self,
        number: int | None = None,
        error: Exception | None = None,
        *,
        is_after_work: bool = False,
    ) -> None:
        """Let a call of ``process_events`` fail.

        Args:
            number: Which, from 1 over all calls on the stage (see ``calls``); the next if not
                given.
            error: What it raises.
            is_after_work: Whether the handler does its work first; then its effects happen twice.
        """
        number = self._coming(number)
        default = RuntimeError(f"call {number} failed on purpose")
        self._watch.mishaps[number] = Mishap(error=error or default, is_after_work=is_after_work)

    def crash_call(self, number: int | None = None) -> None:
        """Let the owner die at the end of a call: the work is done, and nobody learned of it.

        ``number`` as for ``fail_call``. As after ``kill``, another owner starts if none is left.
        """
        self._watch.mishaps[self._coming(number)] = Mishap(error=None, is_after_work=True)

    def kill(self, owner_id: str | None = None) -> None:
        """Let an owner die at this moment, as by SIGKILL: its handlers learn nothing.

        What was not checkpointed comes again, to an owner that finds it dead after
        ``ownership_expiration``. If none is left, another one starts. Without an ``owner_id`` it
        is the one that was there first.
        """
        self._kill(self._owner(owner_id).owner_id)
        self._run(asyncio.sleep(0))

    def freeze(self, owner_id: str | None = None) -> str:
        """Let an owner stand still, as by SIGSTOP; return its id for ``thaw``."""
        owner = self._owner(owner_id)
        owner.process.pause()
        self._record.tell(owner.owner_id, "is frozen")
        return owner.owner_id

    def thaw(self, owner_id: str) -> None:
        """Let a frozen owner go on; it does not know how long it was away."""
        self._run(self._thaw(owner_id))

    def join(self) -> str:
        """Start another owner; return its id.

        With several partitions it is soon handed its share of them.
        """
        return self._run(self._join())

    def leave(self, owner_id: str | None = None) -> None:
        """Stop an owner in good order: it hands over all it has to those who are left."""
        self._run(self._leave(self._owner(owner_id)))

    def move(self, owner_id: str | None = None) -> str:
        """Start another owner and stop this one in good order, as a deployment does.

        Returns the id of the new owner. No event comes twice.
        """
        owner = self._owner(owner_id)
        joined = self.join()
        self._run(self._leave(owner))
        return joined

    def steal(self, partition_id: str = "0") -> str:
        """Let another owner take a partition without asking; return its id.

        The handler that had it is closed with ``CloseReason.OWNERSHIP_LOST`` once its owner
        notices, and what was not checkpointed comes again. If there is no other owner, one joins.
        """
        return self._run(self._steal(partition_id))

    def resume(self, partition_id: str = "0") -> None:
        """Try again a partition that the failure policy stopped, or end a pause of the handler."""
        self._run(self._resume(partition_id))

    @contextmanager
    def store_outage(self) -> Iterator[None]:
        """No owner can reach the store for as long as the block lasts."""
        self._set_store_out(is_out=True)
        try:
            yield
        finally:
            self._set_store_out(is_out=False)

    @contextmanager
    def hub_outage(self) -> Iterator[None]:
        """No owner can reach the hub for as long as the block lasts, and open receivers break."""
        self.hub.begin_outage()
        try:
            yield
        finally:
            self.hub.end_outage()

    @property
    def now(self) -> datetime:
        """What the clock of hub and store shows."""
        return self._begin + timedelta(seconds=self._loop.time())

    @property
    def owner_ids(self) -> Sequence[str]:
        """Who is there, alive and not frozen; who was there first comes first."""
        return tuple(owner.owner_id for owner in self._owners if owner.is_alive)

    # --- how it is done ---------------------------------------------------------------------------

    def _run(self, coroutine: Coroutine[object, object, T]) -> T:
        return self._call(partial(self._runner.run, coroutine))

    def _call(self, function: Callable[[], T]) -> T:
        return function() if self._worker is None else self._worker.submit(function).result()

    def _is_dead(self, owner_id: str) -> bool:
        return any(o.process.is_killed for o in self._owners if o.owner_id == owner_id)

    def _is_thread_busy(self) -> bool:
        return any(
            self._watch.holds[owner.owner_id] > 0 for owner in self._owners if owner.is_alive
        )

    def _owner(self, owner_id: str | None) -> Owner:
        for owner in self._owners:
            if owner.is_alive and owner_id in (None, owner.owner_id):
                return owner
        raise self._record.failure(f"there is no owner {owner_id or 'left'}: {self.owner_ids}")

    def _coming(self, number: int | None) -> int:
        made = len(self._record.calls)
        if number is not None and number <= made:
            raise ValueError(f"call {number} was made already: there were {made}")
        return number or made + 1

    def _set_store_out(self, *, is_out: bool) -> None:
        self._is_store_out = is_out
        for owner in self._owners:
            owner.store.is_out = is_out

    async def _join(self) -> str:
        self._joined_count += 1
        owner_id = f"owner-{self._joined_count}"
        owner = make_owner(
            owner_id,
            hub=self.hub,
            account=self._account,
            handler=lambda: self._watch.make(self._factory, owner_id),
            dead_letters=self.dead_letter_sink,
            config=self._config,
        )
        owner.store.is_out = self._is_store_out
        self._owners.append(owner)
        self._record.tell(owner.owner_id, "joins")
        await owner.process.spawn(owner.processor.start())
        return owner.owner_id

    async def _leave(self, owner: Owner) -> None:
        self._record.tell(owner.owner_id, "leaves")
        await owner.process.spawn(owner.processor.stop())
        self._owners.remove(owner)

    async def _resume(self, partition_id: str) -> None:
        self._owner(self.owner_of(partition_id)).processor.resume(partition_id)

    async def _thaw(self, owner_id: str) -> None:
        frozen = [o for o in self._owners if o.process.is_paused and o.owner_id == owner_id]
        if not frozen:
            raise self._record.failure(f"there is no frozen owner {owner_id}")
        self._record.tell(owner_id, "goes on")
        frozen[-1].process.resume()

    def _kill(self, owner_id: str) -> None:
        owner = self._owner(owner_id)
        owner.process.kill()
        self._record.died(owner_id)
        if not self.owner_ids:
            # In a context of its own, or it would belong to whoever dies here.
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
        self._record.tell(thief_id, f"partition {partition_id}: stolen from {victim_id}")
        return thief_id

    async def _settle(self, within: timedelta) -> None:
        try:
            async with asyncio.timeout(within.total_seconds()):
                while self._undone():
                    self._record.changed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(1):
                            await self._record.changed.wait()
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            what = "; ".join(self._undone())
            failure = self._record.failure(f"not settled after {within}: {what}")
            raise failure from failure.__cause__

    def _undone(self) -> Sequence[str]:
        return undone(self, self._record, [owner for owner in self._owners if owner.is_alive])

    async def _end(self) -> None:
        """Let the living stop, and then the dead be cleaned up without doing anything."""
        stops = [o.process.spawn(o.processor.stop()) for o in self._owners if o.is_alive]
        results = await asyncio.gather(*stops, return_exceptions=True)
        for owner in self._owners:
            owner.store.is_out = True
            owner.process.is_killed = True
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        for owner in self._owners:
            owner.process.bury()
        await asyncio.gather(*left, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

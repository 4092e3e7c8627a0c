"""The processor: read, decide, write, adjust, sleep.

One processor serves its share of a hub's partitions and knows of the others only through the
store. All of them are identical; none is in charge.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from random import Random
from types import TracebackType
from typing import Final, Self

from eventproc.balancer import Round
from eventproc.config import EventProcessorConfig
from eventproc.core.policy import backoff_s
from eventproc.door import check_dead_letters, check_handler, check_owner_id, check_restart
from eventproc.errors import (
    ConfigurationError,
    DuplicateOwnerError,
    SourceError,
    StoreError,
)
from eventproc.handler import HandlerFactory
from eventproc.logs import get_logger
from eventproc.membership import Member
from eventproc.models import ConsumerGroup, LoadBalancingStrategy
from eventproc.ports import CheckpointStore, DeadLetterSink, EventSource
from eventproc.session import JITTER, Parts, Session
from eventproc.signals import StopSignals, stop_signals
from eventproc.statistics import ProcessorStatistics, Tally
from eventproc.telemetry import Telemetry, Watch, global_telemetry
from eventproc.version import EVENTPROC_VERSION

PAUSE_MIN_S: Final = 0.02
"""Between two cycles, however often something changes: no fight may become a busy loop."""


class EventProcessor:
    """Serves a fair share of an event hub's partitions with handlers of the user's.

    ``processor.run()`` in an ordinary program blocks until SIGINT or SIGTERM; inside a running
    event loop it is ``await processor.run()``. ``async with processor:`` runs it beside other code.
    It may be started again after it stopped.
    """

    def __init__(
        self,
        *,
        source: EventSource,
        store: CheckpointStore,
        handler: HandlerFactory,
        dead_letters: DeadLetterSink | None = None,
        consumer_group: str = "$Default",
        owner_id: str | None = None,
        config: EventProcessorConfig | None = None,
        rng: Random | None = None,
        clock: Callable[[], float] | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        """Put a processor together; nothing is opened yet.

        Args:
            source: Where events come from. One for each processor.
            store: Where the group keeps ownership and checkpoints. One for each processor.
            handler: Makes the handler of a partition: usually the handler class.
            dead_letters: Where events go that are given up, if the configuration's failure policy
                says so. One for each processor.
            consumer_group: Whose ownership and checkpoints these are.
            owner_id: A name that stays the same over restarts; a crashed processor that comes
                back under its name in time takes up what it had. Drawn at random if not given.
            config: Every other setting.
            rng: Where chance comes from: jitter, and drawn names.
            clock: Seconds, running while the machine sleeps; for lease times.
            telemetry: Where metrics and spans go: to OpenTelemetry's global providers if not given.

        Raises:
            ConfigurationError: something given cannot work.
        """
        check_handler(handler)
        self._rng = rng or Random()  # noqa: S311 - jitter and names, no secrets
        self._config = config or EventProcessorConfig()
        name = owner_id if owner_id is not None else self._draw_owner_id()
        check_owner_id(name)
        check_dead_letters(self._config, dead_letters)
        check_restart(self._config, owner_id)
        group = ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
            name=consumer_group,
        )
        self._log = get_logger("eventproc.processor", owner_id=name, consumer_group=consumer_group)
        self._parts = Parts(
            source=source,
            store=store,
            handler=handler,
            dead_letters=dead_letters,
            group=group,
            member=Member(
                owner_id=name,
                incarnation="",
                hands_over=(
                    self._config.load_balancing_strategy is LoadBalancingStrategy.COOPERATIVE
                ),
                generation=self._config.generation,
                lease_mode=self._config.lease_mode,
                numbering=source.numbering,
                version=EVENTPROC_VERSION,
            ),
            config=self._config,
            rng=self._rng,
            clock=clock,
            watch=Watch(telemetry or global_telemetry(), group, self.statistics),
            log=self._log,
        )
        self._session: Session | None = None
        self._newest_session: Session | None = None
        self._cycling: asyncio.Task[None] | None = None
        self._stopping = asyncio.Lock()
        self._finished = asyncio.Event()
        self._wake = asyncio.Event()
        self._is_settled = False
        self._is_failing = False
        self._store_failure_count = 0
        self._cycle_count = 0
        self._cycle_s = 0.0
        self._claim_count = self._steal_count = 0

    def _draw_owner_id(self) -> str:
        host = socket.gethostname().encode("ascii", "replace").decode().replace("/", "-")
        return f"{host}-{os.getpid()}-{self._rng.getrandbits(32):08x}"

    @property
    def owner_id(self) -> str:
        """The name by which ownership records know this processor."""
        return self._parts.member.owner_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """Whose partitions it serves."""
        return self._parts.group

    def statistics(self) -> ProcessorStatistics:
        """How this processor does, now; counts stay after its stop. Call it on its own loop."""
        session, counted = self._session, self._newest_session
        return ProcessorStatistics(
            owner_id=self.owner_id,
            owned=tuple(sorted(session.leases.held)) if session else (),
            pumps=session.pumps.statistics() if session else (),
            stopped=session.pumps.stopped if session else (),
            tally=counted.pumps.tally() if counted else Tally(),
            is_settled=self._is_settled,
            cycle_count=self._cycle_count,
            cycle_seconds=self._cycle_s,
            claim_count=self._claim_count,
            steal_count=self._steal_count,
            hand_over_count=counted.pumps.hand_over_count if counted else 0,
            lost_count=counted.pumps.lost_count if counted else 0,
            conflict_count=counted.leases.conflict_count if counted else 0,
            ownership_write_count=counted.leases.write_count if counted else 0,
            lease_margin_seconds=session.leases.margin_s if session else None,
        )

    def pause(self, partition_id: str) -> bool:
        """Receive nothing from this partition until ``resume``; it stays owned.

        Returns whether this processor owns it. A pause ends with the ownership: a new owner knows
        nothing of it. Call it on the processor's own loop.
        """
        return self._session is not None and self._session.pause(partition_id)

    def resume(self, partition_id: str) -> bool:
        """Take back ``pause``, or try again a partition that the failure policy stopped.

        Returns whether this processor owns it. Call it on the processor's own loop.
        """
        return self._session is not None and self._session.resume(partition_id)

    # Running.

    def run(self) -> Awaitable[None]:
        """Serve until told to stop.

        In an ordinary program this blocks, and SIGINT or SIGTERM stop it in good order; a second
        signal ends the process at once, and so does the end of ``shutdown_timeout``, three seconds
        later, where something that the handler left running is in the way. Inside a running event
        loop, await what it returns; signals are the program's own business there.

        Raises:
            ConfigurationError: something given cannot work; nothing was claimed.
            DuplicateOwnerError: another live processor has the same ``owner_id``.
            StoreUnavailableError: the store did not answer at the start.
            SourceUnavailableError: the hub did not answer at the start.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with stop_signals(self._config.shutdown_timeout, self._log) as signals:
                asyncio.run(self._run_until_signal(signals))
            return _Nothing()
        return self._run()

    async def _run(self) -> None:
        async with self:
            await self._finished.wait()

    async def _run_until_signal(self, signals: StopSignals) -> None:
        def on_signal(name: str) -> None:
            self._log.info("signal_received", signal=name)
            # Python 3.11's wait_for may swallow a cancellation, and Azure's client waits by it:
            # then the start goes on to its end, and finds that it is to stop.
            self._finished.set()
            running.cancel()

        running = asyncio.ensure_future(self._run())
        signals.tell(on_signal)
        await asyncio.wait([running])
        if not running.cancelled():
            running.result()

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop; raise what ended the processor, if something did and nothing else is raised."""
        try:
            await self.stop()
        except Exception as failure:
            if exc is None:
                raise
            self._log.error("processor_failed", error=repr(failure), exc_info=failure)

    async def start(self) -> None:
        """Check everything at the door, make this processor known, and begin to serve.

        Raises the errors of ``run``. Starting one that runs is refused.
        """
        if self._session is not None:
            raise ConfigurationError(f"processor {self.owner_id!r} is running already")
        # One that failed half-way may have written its presence over the sign of a live namesake:
        # under its incarnation the next start would take that record for its own.
        member = replace(self._parts.member, incarnation=f"{self._rng.getrandbits(64):016x}")
        parts = replace(self._parts, member=member)
        session = self._session = Session(parts, changed=self._wake.set)
        self._finished.clear()
        try:
            await session.open()
        except BaseException:
            self._session = None
            raise
        self._newest_session = session
        self._cycle_count = self._claim_count = self._steal_count = 0
        self._parts.watch.begin()
        self._log.info("processor_started", partition_count=len(session.partition_ids))
        self._cycling = asyncio.create_task(self._serve(session), name="eventproc-cycles")
        self._cycling.add_done_callback(lambda _: self._finished.set())

    async def stop(self) -> None:
        """Stop in good order, within ``shutdown_timeout`` whatever the handlers do.

        Takes no new events, lets calls under way finish, checkpoints, hands over or releases every
        partition, and takes the presence back. Stopping one that does not run is fine.

        Raises whatever had ended the processor before.
        """
        async with self._stopping:
            session, cycling = self._session, self._cycling
            if session is None or cycling is None:
                return
            self._log.info("processor_stopping")
            if not self._is_failing:  # Else it is closing the session itself.
                cycling.cancel()
            await asyncio.wait([cycling])
            try:
                await session.close()
            finally:
                self._parts.watch.end()
                self._is_failing = False
                self._session = self._cycling = None
                self._finished.set()
                self._log.info("processor_stopped")
            if not cycling.cancelled():
                cycling.result()

    # The claim loop.

    async def _serve(self, session: Session) -> None:
        """Look at the group for ever; what ends that ends the whole processor at once."""
        reading = asyncio.create_task(self._read_partition_ids(session))
        cycling = asyncio.create_task(self._cycle_for_ever(session))
        tasks = [reading, cycling, session.renewing]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except Exception as error:
            self._is_failing = True
            self._log.error("processor_failed", error=repr(error), exc_info=error)
            await session.close(is_displaced=isinstance(error, DuplicateOwnerError))
            raise
        finally:
            for task in (reading, cycling):
                task.cancel()
            await asyncio.wait([reading, cycling])

    async def _cycle_for_ever(self, session: Session) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            begun_s = loop.time()
            try:
                done = await session.cycle()
            except StoreError as error:
                self._note_store_failure(error, loop.time() - begun_s)
            else:
                self._note_round(done, loop.time() - begun_s)
            await self._pause()

    async def _pause(self) -> None:
        """Sleep until the next cycle is due, or until something here has changed."""
        await asyncio.sleep(PAUSE_MIN_S)
        if self._store_failure_count:
            pause_s = backoff_s(
                self._store_failure_count,
                first=self._config.unsettled_interval,
                most=self._config.load_balancing_interval,
            )
        elif self._is_settled:
            pause_s = self._config.load_balancing_interval.total_seconds()
        else:
            pause_s = self._config.unsettled_interval.total_seconds()
        try:
            async with asyncio.timeout(pause_s * self._rng.uniform(1 - JITTER, 1 + JITTER)):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _read_partition_ids(self, session: Session) -> None:
        """Read the partition ids again and again: hubs grow."""
        is_failing = False
        while True:
            await asyncio.sleep(self._config.partition_ids_interval.total_seconds())
            try:
                partition_ids = tuple(await self._parts.source.partition_ids())
            except SourceError as error:
                if not is_failing:
                    self._log.warning("partition_ids_unavailable", error=str(error))
                is_failing = True
                continue
            if is_failing:
                self._log.info("partition_ids_available")
            is_failing = False
            if partition_ids != session.partition_ids:
                self._log.info(
                    "partition_count_changed",
                    before=len(session.partition_ids),
                    after=len(partition_ids),
                )
                session.partition_ids = partition_ids
                self._wake.set()

    def _note_round(self, done: Round, seconds: float) -> None:
        self._parts.watch.cycle(seconds)
        if self._store_failure_count:
            self._log.info("store_recovered", failure_count=self._store_failure_count)
            self._store_failure_count = 0
        self._cycle_count += 1
        self._cycle_s = seconds
        self._claim_count += len(done.claimed)
        self._steal_count += len(done.stolen)
        for partition_id in done.claimed:
            self._log.info("partition_claimed", partition_id=partition_id)
        for partition_id in done.stolen:
            self._log.info("partition_stolen", partition_id=partition_id)
        if done.moves.is_settled != self._is_settled:
            self._is_settled = done.moves.is_settled
            self._log.info("balance_changed", is_settled=self._is_settled)
        self._log.debug("cycle_done", seconds=round(seconds, 6), conflicts=done.conflict_count)

    def _note_store_failure(self, error: StoreError, seconds: float) -> None:
        self._parts.watch.cycle(seconds, error)
        if self._store_failure_count == 0:
            self._log.warning("store_unavailable", error=str(error))
        self._store_failure_count += 1


class _Nothing(Awaitable[None]):
    """What ``run`` returns after it blocked: done, with nothing to say."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()

"""``GroupProcessor``: starts, stops, and repeats the cycle of load balancing.

``EventProcessor`` and ``ResourceProcessor`` have it in common: a member of a group, whatever the
group shares. Members know each other only through the store; they are equal, and none coordinates
the others.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Generic, Self
from weakref import WeakSet

from eventproc.concurrency.loop import is_loop_running
from eventproc.concurrency.tasks import cancellation_kept, end
from eventproc.config import Backoff
from eventproc.errors import ConfigurationError, SourceError, StoreError
from eventproc.logs import ConditionLogger
from eventproc.models import ConsumerGroup, OffsetFormat
from eventproc.ownership.balancer import CycleResult
from eventproc.ownership.own_member import own_member
from eventproc.pumps.pump import PumpT, Work
from eventproc.resources.handler import ResourceHandlerFactory
from eventproc.resources.names import Resources, id_of
from eventproc.resources.pump import ResourcePump
from eventproc.resources.work import NamedResources
from eventproc.retries import waits
from eventproc.runtime.named_lease import NamedLease, lease_config
from eventproc.runtime.parts import MemberParts
from eventproc.runtime.run import DISPLACING, JITTER, ProcessorRun
from eventproc.runtime.signals import StopSignals, stop_signals
from eventproc.runtime.watching import Watching
from eventproc.statistics import GroupStatistics, Phase
from eventproc.telemetry import Instrumentation, Telemetry

PAUSE_MIN_S: Final = 0.02
"""The shortest pause between two cycles, so that frequent changes cause no busy loop."""


class GroupProcessor(Generic[PumpT]):
    """A member of a group, which serves its share of what the group has.

    ``processor.run()`` blocks until SIGINT or SIGTERM. Inside an event loop, use
    ``await processor.serve()``, or ``async with processor:`` to run it beside other code. A
    processor may be started again after it stopped.
    """

    def __init__(self, parts: MemberParts, work: Work[PumpT], telemetry: Telemetry) -> None:
        """Take the checked arguments; nothing is opened before ``start``."""
        self._parts = parts
        self._work = work
        self._config = parts.config
        self._rng = parts.rng
        self._log = parts.log
        self._telemetry = telemetry
        self._reported = Instrumentation(telemetry, parts.group, self.statistics)
        self._watching = Watching(
            parts,
            statistics=self._reported.read,
            shown=work.shown,
            meter_provider=telemetry.meter_provider,
        )
        self._run: ProcessorRun[PumpT] | None = None
        self._newest_run: ProcessorRun[PumpT] | None = None
        self._cycling: asyncio.Task[None] | None = None
        self._stopping = asyncio.Lock()
        self._finished = asyncio.Event()
        self._wake = asyncio.Event()
        self._is_balanced = False
        self._settles_in_s = 0.0
        self._unplaced_count = 0
        self._is_failing = False
        self._store_failure = ConditionLogger(self._log, "store_failed", "store_recovered")
        self._store_wait_s = waits(
            Backoff(
                initial=self._config.rebalance_interval,
                maximum=self._config.load_balancing_interval,
            ),
            self._rng,
        )
        self._store_error: str | None = None
        self._cycle_count = 0
        self._cycle_s = 0.0
        self._claim_count = self._steal_count = 0
        self._leases: WeakSet[NamedLease] = WeakSet()

    @property
    def owner_id(self) -> str:
        """The name of this processor in ownership and member records."""
        return self._parts.member.owner_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The consumer group that this processor is a member of."""
        return self._parts.group

    def statistics(self) -> GroupStatistics:
        """Return a snapshot; counters stay after a stop. Call it on the processor's event loop."""
        return GroupStatistics(**self._group_statistics())

    def _group_statistics(self) -> dict[str, Any]:
        """Return the fields of ``GroupStatistics``, by name."""
        run, counted = self._run, self._newest_run
        return {
            "owner_id": self.owner_id,
            "owned": tuple(sorted(run.leases.held)) if run else (),
            "handing_over": tuple(sorted(run.pumps.handing_over)) if run else (),
            "restarting": run.pumps.restarting if run else (),
            "prepared": run.preparations.ready if run else (),
            "is_balanced": self._is_balanced,
            "unplaced_count": self._unplaced_count,
            "cycle_count": self._cycle_count,
            "cycle_seconds": self._cycle_s,
            "claim_count": self._claim_count,
            "steal_count": self._steal_count,
            "hand_over_count": counted.pumps.hand_over_count if counted else 0,
            "lost_count": counted.pumps.lost_count if counted else 0,
            "conflict_count": counted.leases.conflict_count if counted else 0,
            "ownership_write_count": counted.leases.write_count if counted else 0,
            "lease_margin_seconds": run.leases.margin_s if run else None,
            "store_error": self._store_error,
        }

    def lease(self, name: str) -> NamedLease:
        """Return a block that runs while this processor has the lease of that name.

        For work that must run in one process of the group at a time, such as a scheduled job::

            async with processor.lease("nightly-report") as held:
                await write_report(fence=held.epoch)

        Entering waits until no other processor of the group has the lease; one that waits looks
        once in ``load_balancing_interval``. If the lease is lost, or the processor stops, the block
        is cancelled, and ``LeaseLostError`` raised at its end. ``held.epoch`` is the fencing token.

        Raises:
            ConfigurationError: the processor does not run, or the name cannot be used.
        """
        run = self._run
        if run is None:
            raise ConfigurationError(
                f"lease({name!r}) needs a running processor: use it inside `async with processor:`"
            )
        config, parts = lease_config(self._config), self._parts
        owner_id = f"{self.owner_id}-{self._rng.getrandbits(32):08x}"
        lease_parts = replace(
            parts,
            group=parts.group.for_lease(id_of(name)),
            config=config,
            member=own_member(config, owner_id, OffsetFormat.AMQP, is_named=False),
            executor=run.executor,
            roster=None,
            health=None,
            log=self._log.bind(lease=name),
        )

        def make(handler: ResourceHandlerFactory) -> GroupProcessor[ResourcePump]:
            work = NamedResources(
                Resources([name]), handler, config=config, rng=self._rng, log=lease_parts.log
            )
            return GroupProcessor(lease_parts, work, self._telemetry)

        lease = NamedLease(name, make)
        self._leases.add(lease)
        return lease

    async def finished(self) -> None:
        """Return when the processor has stopped, by itself or by ``stop``."""
        await self._finished.wait()

    # Running.

    def run(self) -> None:
        """Serve partitions, and block until the processor has stopped.

        SIGINT or SIGTERM stop it as ``stop`` does. A second signal ends the process at once, and so
        does a stop that takes three seconds longer than ``shutdown_timeout``.

        Raises:
            ConfigurationError: the processor cannot work as configured, or ``run`` was called
                inside a running event loop; nothing was claimed.
            DuplicateOwnerError: another live processor has the same ``owner_id``.
            StoreUnavailableError: the store did not answer at the start.
            SourceUnavailableError: the hub did not answer at the start.
        """
        if is_loop_running():
            raise ConfigurationError(
                "run() blocks, and was called inside a running event loop: use "
                "`await processor.serve()`, or `async with processor:` beside other code"
            )
        with stop_signals(self._config.shutdown_timeout, self._log) as signals:
            asyncio.run(self._serve_until_signal(signals))

    async def serve(self) -> None:
        """Serve partitions until ``stop`` is called or this call is cancelled; then stop.

        Raises the errors of ``run``. Signals are left to the program.
        """
        async with self:
            await self.finished()

    async def _serve_until_signal(self, signals: StopSignals) -> None:
        def on_signal(name: str) -> None:
            self._log.info("signal_received", signal=name)
            # Python 3.11's wait_for, which Azure's client uses, may swallow a cancellation. Then
            # the start completes, and ``serve`` finds the processor finished.
            self._finished.set()
            serving.cancel()

        serving = asyncio.ensure_future(self.serve())
        signals.subscribe(on_signal)
        await asyncio.wait([serving])
        if not serving.cancelled():
            serving.result()

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
        """Stop; raise the error that ended the processor, unless the block raised one itself."""
        try:
            await self.stop()
        except Exception as failure:
            if exc is None:
                raise
            self._log.error("processor_failed", error=repr(failure), exc_info=failure)

    async def start(self) -> None:
        """Open source and store, check the group, write the member record, and begin to serve.

        Raises the errors of ``serve``, and ``ConfigurationError`` if the processor runs already.
        """
        if self._run is not None:
            raise ConfigurationError(f"processor {self.owner_id!r} is running already")
        self._work.check()
        # A start that failed may have overwritten the member record of a live processor with the
        # same owner id. With the same incarnation, this start would take that record for its own.
        member = replace(self._parts.member, incarnation=f"{self._rng.getrandbits(64):016x}")
        parts = replace(self._parts, member=member)
        run = self._run = ProcessorRun(parts, self._work, changed=self._wake.set)
        self._finished.clear()
        try:
            await self._watching.begin(run.executor, awaited=lambda: run.awaited)
            await run.open()
        except BaseException:
            self._run = None
            await self._watching.end()
            raise
        self._watching.phase = Phase.SERVING
        self._newest_run = run
        self._cycle_count = self._claim_count = self._steal_count = 0
        self._reported.begin()
        self._log.info("processor_started", partition_count=len(run.names))
        self._cycling = asyncio.create_task(self._serve_run(run), name="eventproc-cycles")
        self._cycling.add_done_callback(lambda _: self._finished.set())

    async def stop(self) -> None:
        """Stop within ``shutdown_timeout``, whatever the handlers do.

        Takes no new events, lets calls under way finish, writes checkpoints, hands over or releases
        every partition, and deletes the member record. Does nothing if the processor does not run.

        Raises the error that ended the processor before, if one did.
        """
        async with self._stopping:
            run, cycling = self._run, self._cycling
            if run is None or cycling is None:
                return
            self._watching.phase = Phase.STOPPING
            self._log.info("processor_stopping")
            await self._revoke_leases()
            if not self._is_failing:  # Otherwise the task closes the run itself.
                cycling.cancel()
            await asyncio.wait([cycling])
            try:
                await run.close()
            finally:
                await self._watching.end()
                self._reported.end()
                self._is_failing = False
                self._run = self._cycling = None
                self._finished.set()
                self._log.info("processor_stopped")
            if not cycling.cancelled():
                cycling.result()

    async def _revoke_leases(self) -> None:
        """End the blocks of ``lease``, in half of the shutdown time-out; errors are only logged."""
        task, leases = asyncio.current_task(), list(self._leases)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._config.shutdown_timeout.total_seconds() / 2):
                revoked = (lease.revoke(task) for lease in leases)
                for error in await asyncio.gather(*revoked, return_exceptions=True):
                    if isinstance(error, Exception):
                        self._log.error("processor_failed", error=repr(error), exc_info=error)

    # The claim loop.

    async def _serve_run(self, run: ProcessorRun[PumpT]) -> None:
        """Repeat cycles; an error in them, or in the renewals, ends the processor at once."""
        reading = asyncio.create_task(self._read_names(run))
        cycling = asyncio.create_task(self._repeat_cycles(run))
        # In this order, an error of the cycle is raised first: it may be a duplicate owner id.
        tasks = [cycling, run.renewing, reading]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task in done:
                    task.result()
        except Exception as error:
            self._is_failing, self._watching.phase = True, Phase.STOPPING
            self._log.error("processor_failed", error=repr(error), exc_info=error)
            await run.close(is_displaced=isinstance(error, DISPLACING))
            raise
        finally:
            await end([reading, cycling])

    async def _repeat_cycles(self, run: ProcessorRun[PumpT]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            begun_s = loop.time()
            try:
                done = await run.cycle()
            except DISPLACING:
                raise
            except StoreError as error:
                self._note_store_failure(error, loop.time() - begun_s)
            else:
                self._note_cycle(done, loop.time() - begun_s)
            await self._pause()

    async def _pause(self) -> None:
        """Sleep until the next cycle is due, or until a change here asks for one."""
        await asyncio.sleep(PAUSE_MIN_S)
        config = self._config
        if self._store_failure.count:
            pause_s = self._store_wait_s(self._store_failure.count)
        else:
            interval = (
                config.load_balancing_interval if self._is_balanced else config.rebalance_interval
            )
            pause_s = interval.total_seconds() * self._rng.uniform(1 - JITTER, 1 + JITTER)
            if self._settles_in_s and self._parts.store.tells_changes:
                pause_s = min(pause_s, self._settles_in_s)  # The others have been told by now.
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._wake.wait()

    async def _read_names(self, run: ProcessorRun[PumpT]) -> None:
        """Read periodically which partitions or resources exist."""
        work = self._work
        failure = ConditionLogger(self._log, "partition_ids_failed", "partition_ids_recovered")
        while True:
            await asyncio.sleep(work.names_interval.total_seconds())
            try:
                with cancellation_kept():
                    names = tuple(await work.names())
            except SourceError as error:
                failure.note(error=str(error))
                continue
            failure.end()
            if names != run.names:
                self._log.info("partition_count_changed", before=len(run.names), after=len(names))
                run.names = names
                self._wake.set()

    def _note_cycle(self, done: CycleResult, seconds: float) -> None:
        self._reported.cycle(seconds)
        self._store_failure.end(failure_count=self._store_failure.count)
        self._store_error = None
        self._cycle_count += 1
        self._cycle_s, self._settles_in_s = seconds, done.actions.settles_in_s
        self._unplaced_count = len(done.actions.unplaced)
        self._claim_count += len(done.claimed)
        self._steal_count += len(done.stolen)
        for partition_id in done.claimed:
            self._log.info("partition_claimed", partition_id=partition_id)
        for partition_id in done.stolen:
            self._log.info("partition_stolen", partition_id=partition_id)
        if done.actions.is_balanced != self._is_balanced:
            self._is_balanced = done.actions.is_balanced
            self._log.info("balance_changed", is_balanced=self._is_balanced)
        self._log.debug("cycle_done", seconds=round(seconds, 6), conflicts=done.conflict_count)

    def _note_store_failure(self, error: StoreError, seconds: float) -> None:
        self._reported.cycle(seconds, error)
        self._store_error = str(error)
        self._store_failure.note(is_error=error.is_final, error=self._store_error)

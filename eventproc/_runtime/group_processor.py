"""``GroupProcessor``: starts and stops a member of a group, whatever the group shares.

``EventProcessor`` and ``ResourceProcessor`` have it in common. Members know each other only through
the store; they are equal, and none coordinates the others.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self

from eventproc._base.logs import error_text, logging_for
from eventproc._base.resource import require_process
from eventproc._base.tasks import CancellableBlock, end, is_loop_running
from eventproc._base.threads import ping
from eventproc._group.pumps.pump import PumpT, Work
from eventproc._runtime.parts import MemberParts
from eventproc._runtime.run import CLOSE_GRACE_S, DISPLACING, ProcessorRun
from eventproc._runtime.signals import StopSignals, stop_signals
from eventproc._runtime.store_thread import StoreExecutor
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.models._statistics import GroupStatistics, Phase
from eventproc.ports import HealthReporter, WatchedMember


@dataclass(frozen=True, slots=True)
class _Home:
    """What belongs to the event loop on which a processor is used."""

    loop: asyncio.AbstractEventLoop
    stopping: asyncio.Lock
    started: asyncio.Event
    """Set while no start is under way."""

    finished: asyncio.Event


class GroupProcessor(Generic[PumpT]):
    """A member of a group, which serves its share of what the group has.

    ``processor.run()`` blocks until SIGINT or SIGTERM. Inside an event loop, use
    ``await processor.serve()``, or ``async with processor:`` to run it beside other code. A
    processor may be started again after it stopped.
    """

    def __init__(self, parts: MemberParts, work: Work[PumpT]) -> None:
        """Take the checked arguments; nothing is opened before ``start``."""
        self._parts = parts
        self._work = work
        self._log = parts.log
        self._watching = Watching(parts, work.display_name)
        self._owner_id = parts.member.owner_id
        self._run: ProcessorRun[PumpT] | None = None
        self._newest_run: ProcessorRun[PumpT] | None = None
        """The last one that began to serve: its counters can be read after it has ended."""

        self._serving: asyncio.Task[None] | None = None
        """Runs ``_serve_run``."""

        self._opening = CancellableBlock()
        """What ``start`` does until the processor serves; ``stop`` cancels it."""

        self._block = CancellableBlock()
        self._home: _Home | None = None

    @property
    def owner_id(self) -> str:
        """The name of this processor in ownership and member records.

        If it is not given, each start draws one: empty until the first start.
        """
        return self._owner_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The consumer group that this processor is a member of."""
        return self._parts.group

    def statistics(self) -> GroupStatistics:
        """Return a snapshot; counters stay after a stop. Call it on the processor's event loop."""
        return GroupStatistics(**self._group_statistics())

    def _group_statistics(self) -> dict[str, Any]:
        """Return the fields of ``GroupStatistics``, by name."""
        run, counted = self._current_run, self._newest_run
        held = run.leases.held if run else frozenset()
        cycles = counted.cycles if counted else None
        renewal_error = run.leases.error if run else None
        return {
            "owner_id": self.owner_id,
            "owned": tuple(sorted(held)),
            "handing_over": tuple(sorted(run.pumps.hand_overs.under_way)) if run else (),
            # A partition's failures are remembered for its return, too.
            "restarting": tuple(p for p in run.pumps.restarting if p in held) if run else (),
            "prepared": run.preparations.ready if run else (),
            "is_balanced": cycles.is_balanced if cycles else False,
            "unplaced_count": cycles.unplaced_count if cycles else 0,
            "cycle_count": cycles.count if cycles else 0,
            "cycle_seconds": cycles.seconds if cycles else 0.0,
            "claim_count": cycles.claim_count if cycles else 0,
            "steal_count": cycles.steal_count if cycles else 0,
            "hand_over_count": counted.pumps.hand_overs.count if counted else 0,
            "lost_count": counted.pumps.lost_count if counted else 0,
            "conflict_count": cycles.conflict_count if cycles else 0,
            "ownership_write_count": counted.leases.write_count if counted else 0,
            "lease_margin_seconds": run.leases.margin_s if run else None,
            "store_error": (cycles.store_error if cycles else None) or renewal_error,
        }

    @property
    def _current_run(self) -> ProcessorRun[PumpT] | None:
        """The run that has begun and not ended.

        Raises:
            ConfigurationError: it began in another process.
        """
        if self._run is not None:
            require_process(f"processor {self.owner_id!r}", self._run.process_id)
        return self._run

    async def finished(self) -> None:
        """Return when the processor has stopped, by itself or by ``stop``."""
        await self._at_home().finished.wait()

    def _at_home(self) -> _Home:
        """Return what belongs to the processor's event loop: the running one, if it is stopped.

        A processor that runs keeps its loop: a call from another one raises Python's error.
        """
        is_stopped, loop = self._current_run is None, asyncio.get_running_loop()
        if self._home is None or (is_stopped and self._home.loop is not loop):
            self._home = _Home(loop, asyncio.Lock(), asyncio.Event(), asyncio.Event())
            self._home.started.set()
        return self._home

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
        with stop_signals(self._parts.config.shutdown_timeout, self._log) as signals:
            asyncio.run(self._serve_until_signal(signals))

    async def serve(self) -> None:
        """Serve partitions until ``stop`` is called or this call is cancelled; then stop.

        Raises the errors of ``run``. Signals are left to the program.
        """
        async with self:
            await self.finished()

    async def _serve_until_signal(self, signals: StopSignals) -> None:
        is_asked, finished = False, self._at_home().finished

        def on_signal(name: str) -> None:
            nonlocal is_asked
            is_asked = True
            self._log.info("signal_received", signal=name)
            # Python 3.11's wait_for, which Azure's client uses, may swallow a cancellation. Then
            # the start completes, and ``serve`` finds the processor finished.
            finished.set()
            whole.cancel()

        # From start to stop: also a start that waits for the store can be cancelled.
        whole = asyncio.ensure_future(self.serve())
        signals.subscribe(on_signal)
        await asyncio.wait([whole])
        if not (is_asked and whole.cancelled()):
            whole.result()

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        self._block.enter()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop; raise the error that ended the processor, unless the block raised one itself.

        That error cancels the block. A cancellation by others stays one.
        """
        is_interrupted = await self._block.leave(exc)
        try:
            await self.stop()
        except Exception as failure:
            if exc is None or is_interrupted:
                raise
            self._log.error("processor_failed", error=repr(failure), exc_info=failure)

    async def start(self) -> None:
        """Open source and store, check the group, write the member record, and begin to serve.

        If ``stop`` is called meanwhile, what was opened is closed, and the call returns without an
        error: the processor has stopped.

        Raises the errors of ``serve``, and ``ConfigurationError`` if the processor runs already.
        """
        if self._current_run is not None:
            has_failed = self._serving is not None and self._serving.done()
            why = "has failed: stop() raises its error" if has_failed else "is running already"
            raise ConfigurationError(f"processor {self.owner_id!r} {why}")
        self._work.check()
        with self._logging():
            # A start that failed may have overwritten the member record of a live processor with
            # the same owner id. With the same incarnation, this start would take that record for
            # its own.
            parts, home = self._parts.identified(), self._at_home()
            self._owner_id = parts.member.owner_id
            parts.log_fields["owner_id"] = self._owner_id
            self._log.info(
                "processor_starting",
                **parts.log_fields,
                store=repr(parts.store),
                placement=parts.config.placement.name,
                expiration_s=parts.config.ownership_expiration.total_seconds(),
            )
            run = self._run = ProcessorRun(parts, self._work)
            home.finished.clear()
            home.started.clear()
            try:
                renewing = await self._open(run)
                if renewing is None:
                    self._log.info("processor_stopped")
                    home.finished.set()
                    return
                self._watching.phase = Phase.SERVING
                self._newest_run = run
                self._parts.reported.begin()
                self._log.info("processor_started", partition_count=len(run.names))
                serving = self._serve_run(run, renewing)
                self._serving = asyncio.create_task(serving, name="eventproc-serving")
                self._serving.add_done_callback(lambda _: home.finished.set())
            finally:
                home.started.set()

    async def _open(self, run: ProcessorRun[PumpT]) -> asyncio.Task[None] | None:
        """Open a run; return the task that renews, or ``None`` if ``stop`` ended it before."""
        self._opening.enter()
        try:
            await self._watching.begin(run.executor, self.owner_id, awaited=lambda: run.awaited)
            renewing = await run.open()
        except BaseException as error:
            is_stopped = await self._opening.leave(error)
            self._run = None
            await self._watching.end()
            if not is_stopped:
                raise
            return None
        await self._opening.leave(None)
        return renewing

    def _logging(self) -> AbstractContextManager[None]:
        """Name this processor in what the block logs."""
        return logging_for(self, self._parts.log_fields)

    async def stop(self) -> None:
        """Stop within ``shutdown_timeout``, whatever the handlers do.

        Takes no new events, lets calls under way finish, writes checkpoints, hands over or releases
        every partition, and deletes the member record. A start that is under way ends early. Does
        nothing if the processor does not run.

        Raises the error that ended the processor before, if one did.
        """
        home = self._at_home()
        with self._logging():
            await self._stop(home)

    async def _stop(self, home: _Home) -> None:
        async with home.stopping:
            is_announced = await self._stop_opening(home)
            run, serving = self._current_run, self._serving
            if run is None or serving is None:
                return
            is_failing = run.is_closed  # By ``_serve_run``, after an error.
            if not is_failing:
                self._watching.phase = Phase.STOPPING
                if not is_announced:
                    self._log.info("processor_stopping")
                serving.cancel()
            await asyncio.wait([serving])
            try:
                await run.close()  # Returns at once after an error.
            finally:
                await self._end_watching()
                self._parts.reported.end()
                if not is_failing:
                    self._log.info("processor_stopped")
                self._run = self._serving = None
                home.finished.set()
            if not serving.cancelled():
                serving.result()

    async def _end_watching(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_GRACE_S):
                await self._watching.end()
        except TimeoutError:
            self._log.error("close_timed_out", part="health")

    async def _stop_opening(self, home: _Home) -> bool:
        """End a start that is under way, and return when it has ended; return whether one was.

        What it awaits may suppress the cancellation: then the processor serves.
        """
        run = self._current_run
        if run is None or home.started.is_set():
            return False
        if not run.is_closed:  # A start that failed closes what it has opened.
            self._watching.phase = Phase.STOPPING
            self._log.info("processor_stopping")
            self._opening.cancel()
        await home.started.wait()
        return True

    async def _serve_run(self, run: ProcessorRun[PumpT], renewing: asyncio.Task[None]) -> None:
        """Repeat cycles; an error in them, or in the renewals, ends the processor at once."""
        reading = run.begin_reading()
        cycling = asyncio.create_task(run.repeat_cycles())
        # In this order, an error of the cycle is raised first: it may be a duplicate owner id.
        tasks = [cycling, renewing, reading]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task in done:
                    task.result()
        except Exception as error:
            self._watching.fail(error)
            self._log.error("processor_failed", error=repr(error), exc_info=error)
            self._block.cancel()
            try:
                await run.close(is_displaced=isinstance(error, DISPLACING))
            finally:
                self._log.info("processor_stopped", error=repr(error))
            raise
        finally:
            reading.cancel()  # The user's or the source's code: its end is awaited within a limit.
            await end([cycling])


class Watching:
    """Reports a processor to its health reporter, if it has one, from start to end of a run."""

    def __init__(self, parts: MemberParts, display_name: Callable[[str], str]) -> None:
        """*display_name* returns the user's name for a partition or resource."""
        self._parts = parts
        self._display_name = display_name
        self._member: WatchedMember | None = None
        self.phase = Phase.STARTING
        self._failure = ""

    async def begin(
        self, executor: StoreExecutor, owner_id: str, *, awaited: Callable[[], str]
    ) -> None:
        """Report that the processor starts.

        Args:
            executor: The run's, which is closed on an error.
            owner_id: The run's.
            awaited: Returns what the start waits for.

        Raises:
            ConfigurationError: the reporter cannot work.
        """
        self.phase, self._failure = Phase.STARTING, ""
        reporter: HealthReporter | None = self._parts.health
        if reporter is None:
            return
        member = WatchedMember(
            owner_id=owner_id,
            group=self._parts.group,
            phase=lambda: self.phase,
            awaited=awaited,
            failure=lambda: self._failure,
            statistics=self._parts.reported.read,
            display_name=self._display_name,
            ping_loop=partial(ping, asyncio.get_running_loop()),
            ping_store=executor.ping,
            meter_provider=self._parts.reported.meter_provider,
        )
        try:
            await reporter.begin(member)
        except BaseException:
            await executor.close()
            raise
        self._member = member

    def fail(self, error: Exception) -> None:
        """Report that the processor has failed: it serves nothing more, until it is started."""
        self.phase, self._failure = Phase.STOPPING, f"it has failed: {error_text(error)}"

    async def end(self) -> None:
        """Report no more."""
        member, self._member = self._member, None
        if member is not None and self._parts.health is not None:
            await self._parts.health.end(member)

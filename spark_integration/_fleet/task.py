"""Runs one processor of a fleet inside a Spark task.

The processor stops gracefully when the driver requests it, when the driver has been unreachable
for ``driver_patience``, on SIGTERM and SIGINT, and when the executor dies, which Spark's daemon
signals by SIGHUP.

A watchdog runs in a thread of its own: a handler that blocks the event loop blocks everything on
that loop, but the processor's store thread still renews its leases. So if the executor has died, or
a handler keeps the processor from stopping in time, the watchdog ends the process.
"""

import asyncio
import faulthandler
import logging
import os
import secrets
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from types import FrameType
from typing import Final

from eventproc._base.logs import ConditionLogger, RecordObserver, get_logger, shortened
from eventproc._base.tasks import end
from eventproc._base.threads import Background, exclude_imports_from_collections
from eventproc._runtime.processors import EventProcessor
from eventproc.errors import ConfigurationError, DuplicateOwnerError
from eventproc.models._statistics import ProcessorStatistics
from eventproc.ports import CheckpointStore, ForwardingStore
from spark_integration._fleet.job import FleetJob, FleetWork
from spark_integration._fleet.report_client import STOP_REQUESTED, ReportClient
from spark_integration._fleet.statistics import Phase, Report, encode
from spark_integration._option_names import naming_recipes

WATCH_POLL_S: Final = 0.5

BLOCKED_S: Final = 10.0
"""An event loop without progress for this long is logged as blocked."""


class MemberWatchdog(Background):
    """Watches one member while its ``with`` block runs."""

    def __init__(
        self,
        owner_id: str,
        *,
        stop_timeout: timedelta,
        idle_s: Callable[[], float],
        on_stop: Callable[[str], None],
        end_process: Callable[[], None] | None = None,
    ) -> None:
        """Prepare a watchdog; entering its block starts it.

        Args:
            owner_id: The member's owner id, for the log.
            stop_timeout: How long a stop may take before the watchdog ends the process.
            idle_s: Returns the seconds since the event loop last made progress.
            on_stop: Called with the reason if the member should stop.
            end_process: Ends the process. Default: exit at once, after dumping all stacks.
        """
        super().__init__("eventproc-fleet-watchdog")
        self._stop_timeout_s = stop_timeout.total_seconds()
        self._idle_s = idle_s
        self._on_stop = on_stop
        self._end_process = end_process or _end_process
        self._until_s: float | None = None
        self._parent = os.getppid()
        self._log = get_logger("eventproc.spark.fleet", owner_id=owner_id)
        self._block = ConditionLogger(
            self._log, "fleet_member_blocked", "fleet_member_block_recovered"
        )

    def expect_end(self) -> None:
        """End the process ``stop_timeout`` from now. May be called by a signal handler."""
        self._until_s = time.monotonic() + self._stop_timeout_s

    def _run(self) -> None:
        while not self._ended.wait(WATCH_POLL_S):
            if os.getppid() != self._parent:  # Spark's daemon died: it cannot signal
                self._on_stop("the executor is gone")
            self._check_loop()
            if self._until_s is not None and time.monotonic() > self._until_s:
                self._log.error("fleet_member_stop_timed_out", seconds=self._stop_timeout_s)
                self._end_process()
                return

    def _check_loop(self) -> None:
        idle_s = self._idle_s()
        if idle_s > BLOCKED_S:
            self._block.note(seconds=round(idle_s, 1))
        else:
            self._block.end()


def _end_process() -> None:
    """Dump the stacks of all threads, one of which shows what hangs, and exit."""
    if sys.__stderr__ is not None:
        faulthandler.dump_traceback(sys.__stderr__)
    os._exit(1)


WARNINGS_HELD: Final = 20
POLL_S: Final = 0.1
"""How often statistics are taken. Events handled after the last time before a stop do not count."""

_SIGNALS: Final = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)


def serve_slots(job: FleetJob, slots: Iterable[int]) -> Iterator[bytes]:
    """Run the processors of these slots, one after another; yield the last report of each."""
    exclude_imports_from_collections()
    for slot in slots:
        yield encode(MemberTask(job, slot).serve(), job.token)


class _Warnings(RecordObserver):
    """Keeps the newest warnings and errors for the next report, of which the size is limited."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.held: deque[str] = deque(maxlen=WARNINGS_HELD)

    def emit(self, record: logging.LogRecord) -> None:
        self.held.append(shortened(record.getMessage()))


class MemberTask:
    """Runs the processor of one slot in one attempt of a task."""

    def __init__(
        self, job: FleetJob, slot: int, *, end_process: Callable[[], None] | None = None
    ) -> None:
        self._job = job
        self._slot = slot
        self._incarnation = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False
        self._stop = asyncio.Event()
        self._processor: EventProcessor | None = None
        self._newest: ProcessorStatistics | None = None
        self._polled_at_s = time.monotonic()
        self._error: str | None = None
        self._is_permanent = False
        self._has_ended = False
        self._warnings = _Warnings()
        self._log = get_logger("eventproc.spark.fleet", owner_id=job.owner_id(slot))
        self._watchdog = MemberWatchdog(
            job.owner_id(slot),
            stop_timeout=job.stop_timeout,
            idle_s=self._idle_s,
            on_stop=self._on_stop,
            end_process=end_process,
        )

    def serve(self) -> Report:
        """Run until the processor ends; return the last report, which has the error, if any."""
        self._incarnation = secrets.token_hex(8)
        logger = logging.getLogger("eventproc")
        logger.addHandler(self._warnings)
        try:
            with self._watchdog:
                asyncio.run(self._serve())
        finally:
            logger.removeHandler(self._warnings)
        self._has_ended = True
        return self._report()

    def _report(self) -> Report:
        """Make a report. Called in any thread."""
        statistics = self._newest
        if self._has_ended:
            phase = Phase.ENDED
        elif self._is_stopping:
            phase = Phase.STOPPING
        elif statistics is not None and statistics.cycle_count:
            phase = Phase.SERVING
        else:
            phase = Phase.STARTING
        return Report(
            slot=self._slot,
            incarnation=self._incarnation,
            host=socket.gethostname(),
            process_id=os.getpid(),
            phase=phase,
            statistics=statistics,
            age_seconds=0.0 if self._has_ended else self._idle_s(),
            warnings=tuple(self._warnings.held),
            error=None if self._error is None else shortened(self._error),
            is_permanent=self._is_permanent,
        )

    def _idle_s(self) -> float:
        return time.monotonic() - self._polled_at_s

    def _poll(self) -> None:
        """Take statistics, but keep the last counters: a processor resets them when it stops."""
        if self._processor is not None:
            fresh, previous = self._processor.statistics(), self._newest
            if (
                previous is not None
                and fresh.counters.received_count < previous.counters.received_count
            ):
                fresh = replace(fresh, counters=previous.counters)
            self._newest = fresh
        self._polled_at_s = time.monotonic()

    async def _poll_forever(self) -> None:
        while True:
            self._poll()
            await asyncio.sleep(POLL_S)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        polling = asyncio.create_task(self._poll_forever())
        client = ReportClient(
            self._job, report=self._report, on_answer=self._forget_warnings, on_stop=self._on_stop
        )
        try:
            with _signals(self._on_stop), client, naming_recipes():
                await self._process()
        except Exception as error:  # noqa: BLE001 - reported to the driver, which decides
            self._is_permanent = isinstance(error, ConfigurationError) and not isinstance(
                error, DuplicateOwnerError
            )
            kind = "" if self._is_permanent else f"{type(error).__name__}: "
            self._error = f"{kind}{error}"
            self._log.warning("fleet_member_failed", error=self._error, exc_info=error)
        finally:
            await end([polling])
            self._poll()

    async def _process(self) -> None:
        work = self._job.open_work()
        async with AsyncExitStack() as stack:
            source = await stack.enter_async_context(work.source.make(work.hub_options))
            processor = EventProcessor(
                source=source,
                store=_store(work),
                handler=work.load_handler(),
                dead_letters=work.make_dead_letters(),
                consumer_group=work.consumer_group,
                owner_id=self._job.owner_id(self._slot),
                config=work.config,
            )
            await self._run(processor)

    async def _run(self, processor: EventProcessor) -> None:
        """Run the processor until it ends; stop it when ``_stop`` is set."""
        self._processor = processor
        running = asyncio.ensure_future(processor.serve())
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        await end([stopping])
        if self._stop.is_set() and not processor.statistics().cycle_count:
            running.cancel()  # It is starting. If the cancellation has no effect, stop() ends it.
        while not running.done():
            await processor.stop()
            await asyncio.wait([running], timeout=POLL_S)
        with suppress(asyncio.CancelledError):
            running.result()

    def _forget_warnings(self, report: Report) -> None:
        """Remove the warnings of a report that the driver has received."""
        for warning in report.warnings:
            with suppress(ValueError):
                self._warnings.held.remove(warning)

    def _on_stop(self, reason: str) -> None:
        """Start to stop. Called in any thread, and by signal handlers."""
        if self._is_stopping or self._loop is None:
            return
        self._is_stopping = True
        if reason != STOP_REQUESTED:
            self._error = f"it had to stop: {reason}"
        self._watchdog.expect_end()
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(self._begin_stop, reason)

    def _begin_stop(self, reason: str) -> None:
        self._log.info("fleet_member_stopping", reason=reason)
        self._stop.set()


@contextmanager
def _signals(on_signal: Callable[[str], None]) -> Iterator[None]:
    """Call ``on_signal`` with a signal's name, even while the event loop is blocked."""

    def handle(number: int, _frame: FrameType | None) -> None:
        on_signal(signal.Signals(number).name)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _store(work: FleetWork) -> CheckpointStore:
    """Make the store without opening it: the processor does so on its store thread."""
    made: AbstractAsyncContextManager[CheckpointStore] = work.store.make()
    return made if isinstance(made, CheckpointStore) else LazyStore(made)


class LazyStore(ForwardingStore):
    """Forwards to the store that a context manager yields. Can be opened once.

    A processor opens its store on the store thread's event loop, so the context manager has to be
    entered there, too.
    """

    def __init__(self, manager: AbstractAsyncContextManager[CheckpointStore]) -> None:
        self._manager = manager
        self._stack = AsyncExitStack()

    async def open(self) -> None:
        """Enter the context manager."""
        self.store = await self._stack.enter_async_context(self._manager)

    async def close(self) -> None:
        """Exit the context manager."""
        await self._stack.aclose()

    def transactions(self) -> None:
        """Return ``None``: transactions are not supported, because the store does not exist yet."""
        return

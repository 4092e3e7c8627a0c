"""One processor in one task of Spark, from the task's side.

It ends in good order when the driver says so, when the driver is out of reach for too long, on
SIGTERM and SIGINT, and when the executor around it dies, of which Spark's daemon tells by SIGHUP.
If a handler does not let it, it ends its process.
"""

import asyncio
import logging
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from random import Random
from types import FrameType
from typing import Final

from eventproc.errors import ConfigurationError, DuplicateOwnerError
from eventproc.logs import get_logger
from eventproc.ports import CheckpointStore
from eventproc.processor import EventProcessor
from eventproc.statistics import ProcessorStatistics
from spark_integration.fleet_link import TOLD, FleetLink
from spark_integration.fleet_order import FleetOrder, FleetWork
from spark_integration.fleet_status import Phase, Report, encode
from spark_integration.fleet_store import LateStore
from spark_integration.fleet_watch import FleetWatch
from spark_integration.worker import settle_in

WARNINGS_HELD: Final = 20
LOOK_S: Final = 0.1
"""Between two looks at the processor. What it counts after the last one is missed."""

_SIGNALS: Final = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)


def serve_slots(order: FleetOrder, slots: Iterable[int]) -> Iterator[bytes]:
    """Be the members of these slots, one after the other; yield the last report of each."""
    settle_in()
    for slot in slots:
        yield encode(FleetSeat(order, slot).serve(), order.token)


class _Warnings(logging.Handler):
    """Keeps what is to be told to the driver."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.held: deque[str] = deque(maxlen=WARNINGS_HELD)

    def emit(self, record: logging.LogRecord) -> None:
        told = ("partition_id", "attempt", "error")
        fields = "".join(
            f" {name}={value}"
            for name in told
            if (value := getattr(record, name, None)) is not None
        )
        self.held.append(f"{record.getMessage()}{fields}")


class FleetSeat:
    """The processor of one slot, for as long as one task attempt lives."""

    def __init__(
        self, order: FleetOrder, slot: int, *, end_process: Callable[[], None] | None = None
    ) -> None:
        self._order = order
        self._slot = slot
        self._incarnation = f"{Random().getrandbits(64):016x}"  # noqa: S311 - a name, no secret
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False
        self._stop = asyncio.Event()
        self._processor: EventProcessor | None = None
        self._newest: ProcessorStatistics | None = None
        self._looked_at_s = time.monotonic()
        self._error: str | None = None
        self._is_hopeless = False
        self._has_ended = False
        self._warnings = _Warnings()
        self._log = get_logger("eventproc.spark.fleet", owner_id=order.owner_id(slot))
        self._watch = FleetWatch(
            order.owner_id(slot),
            stop_timeout=order.stop_timeout,
            idle_s=self._idle_s,
            on_stop=self._on_stop,
            end_process=end_process,
        )

    def serve(self) -> Report:
        """Run until there is a reason to stop; return the last report. No error is raised."""
        logger = logging.getLogger("eventproc")
        logger.addHandler(self._warnings)
        try:
            with self._watch:
                asyncio.run(self._serve())
        finally:
            logger.removeHandler(self._warnings)
        self._has_ended = True
        return self._report()

    def _report(self) -> Report:
        """Say how it does; called in any thread."""
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
            error=self._error,
            is_hopeless=self._is_hopeless,
        )

    def _idle_s(self) -> float:
        return time.monotonic() - self._looked_at_s

    def _look(self) -> None:
        """Take statistics. A processor that has stopped has forgotten what it counted."""
        if self._processor is not None:
            fresh, counted = self._processor.statistics(), self._newest
            if counted is not None and fresh.tally.received_count < counted.tally.received_count:
                fresh = replace(fresh, tally=counted.tally)
            self._newest = fresh
        self._looked_at_s = time.monotonic()

    async def _keep_looking(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(LOOK_S)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        looking = asyncio.create_task(self._keep_looking())
        link = FleetLink(
            self._order, report=self._report, on_answer=self._forget, on_stop=self._on_stop
        )
        try:
            with _signals(self._on_stop), link:
                await self._process()
        except Exception as error:  # noqa: BLE001 - whatever it is, the driver is told, and decides
            self._is_hopeless = isinstance(error, ConfigurationError) and not isinstance(
                error, DuplicateOwnerError
            )
            kind = "" if self._is_hopeless else f"{type(error).__name__}: "
            self._error = f"{kind}{error}"
            self._log.warning("fleet_member_failed", error=self._error, exc_info=error)
        finally:
            looking.cancel()
            self._look()

    async def _process(self) -> None:
        work = self._order.open_work()
        async with AsyncExitStack() as stack:
            source = await stack.enter_async_context(work.source.make(work.hub_options))
            processor = EventProcessor(
                source=source,
                store=_store(work),
                handler=work.load_handler(),
                dead_letters=work.make_dead_letters(),
                consumer_group=work.consumer_group,
                owner_id=self._order.owner_id(self._slot),
                config=work.config,
            )
            await self._run(processor)

    async def _run(self, processor: EventProcessor) -> None:
        """Run it until it ends or is to stop."""
        self._processor = processor
        running = asyncio.ensure_future(processor.run())
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if self._stop.is_set() and not processor.statistics().cycle_count:
            running.cancel()  # It is starting; a start that swallows this is stopped below.
        while not running.done():
            await processor.stop()
            await asyncio.wait([running], timeout=LOOK_S)
        with suppress(asyncio.CancelledError):
            running.result()

    def _forget(self, report: Report) -> None:
        """The driver has these."""
        for warning in report.warnings:
            with suppress(ValueError):
                self._warnings.held.remove(warning)

    def _on_stop(self, reason: str) -> None:
        """Begin to stop; called in any thread, and by the handlers of signals."""
        if self._is_stopping or self._loop is None:
            return
        self._is_stopping = True
        if reason != TOLD:
            self._error = f"it had to stop: {reason}"
        self._watch.expect_end()
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(self._begin_stop, reason)

    def _begin_stop(self, reason: str) -> None:
        self._log.info("fleet_member_stopping", reason=reason)
        self._stop.set()


@contextmanager
def _signals(on_signal: Callable[[str], None]) -> Iterator[None]:
    """Call this with a signal's name, even while the event loop is blocked."""

    def handle(number: int, _frame: FrameType | None) -> None:
        on_signal(signal.Signals(number).name)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _store(work: FleetWork) -> CheckpointStore:
    """Make the store, unopened: the processor opens it where its renewals are."""
    made: AbstractAsyncContextManager[CheckpointStore] = work.store.make()
    return made if isinstance(made, CheckpointStore) else LateStore(made)

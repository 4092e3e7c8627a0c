"""One processor in one task of Spark, from the task's side.

It ends in good order when the driver says so, when the driver is out of reach for too long, on
SIGTERM, and when the executor around it dies, of which Spark's daemon tells by SIGHUP.
"""

import asyncio
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import replace
from random import Random
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
from spark_integration.worker import settle_in

PARENT_WATCH_S: Final = 1.0
WARNINGS_HELD: Final = 20
STOP_LOOK_S: Final = 0.05
"""Between two looks at a processor that stops, so that little of what it counts is missed."""

_SIGNALS: Final = (signal.SIGHUP, signal.SIGTERM)


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

    def __init__(self, order: FleetOrder, slot: int) -> None:
        self._order = order
        self._slot = slot
        self._incarnation = f"{Random().getrandbits(64):016x}"  # noqa: S311 - a name, no secret
        self._stop = asyncio.Event()
        self._processor: EventProcessor | None = None
        self._newest: ProcessorStatistics | None = None
        self._error: str | None = None
        self._is_hopeless = False
        self._has_ended = False
        self._warnings = _Warnings()
        self._log = get_logger("eventproc.spark.fleet", owner_id=order.owner_id(slot))

    def serve(self) -> Report:
        """Run until there is a reason to stop; return the last report. No error is raised."""
        logger = logging.getLogger("eventproc")
        logger.addHandler(self._warnings)
        try:
            asyncio.run(self._serve())
        finally:
            logger.removeHandler(self._warnings)
        self._has_ended = True
        return self._report()

    def _report(self) -> Report:
        statistics = self._look()
        if self._has_ended:
            phase = Phase.ENDED
        elif self._stop.is_set():
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
            warnings=tuple(self._warnings.held),
            error=self._error,
            is_hopeless=self._is_hopeless,
        )

    def _look(self) -> ProcessorStatistics | None:
        """Take statistics. A processor that has stopped has forgotten what it counted."""
        if self._processor is not None:
            fresh, counted = self._processor.statistics(), self._newest
            if counted is not None and fresh.tally.received_count < counted.tally.received_count:
                fresh = replace(fresh, tally=counted.tally)
            self._newest = fresh
        return self._newest

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_stop, number.name)
        link = FleetLink(
            self._order, report=self._report, on_answer=self._forget, on_stop=self._on_stop
        )
        beside = [asyncio.create_task(link.keep()), asyncio.create_task(self._watch_parent())]
        try:
            await self._process()
        except Exception as error:  # noqa: BLE001 - whatever it is, the driver is told, and decides
            self._is_hopeless = isinstance(error, ConfigurationError) and not isinstance(
                error, DuplicateOwnerError
            )
            kind = "" if self._is_hopeless else f"{type(error).__name__}: "
            self._error = f"{kind}{error}"
            self._log.warning("fleet_member_failed", error=self._error, exc_info=error)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

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
            ending = asyncio.ensure_future(processor.stop())
            while not ending.done():
                self._look()
                await asyncio.wait([ending], timeout=STOP_LOOK_S)
            ending.result()
            await asyncio.wait([running], timeout=STOP_LOOK_S)
        with suppress(asyncio.CancelledError):
            running.result()

    def _forget(self, report: Report) -> None:
        """The driver has these."""
        for warning in report.warnings:
            with suppress(ValueError):
                self._warnings.held.remove(warning)

    def _on_stop(self, reason: str) -> None:
        if self._stop.is_set():
            return
        self._log.info("fleet_member_stopping", reason=reason)
        if reason != TOLD:
            self._error = f"it had to stop: {reason}"
        self._stop.set()

    async def _watch_parent(self) -> None:
        """Spark's daemon started this process; without it nobody would tell of anything."""
        parent = os.getppid()
        while os.getppid() == parent:  # noqa: ASYNC110 - nobody could set an event
            await asyncio.sleep(PARENT_WATCH_S)
        self._on_stop("the executor is gone")


def _store(work: FleetWork) -> CheckpointStore:
    """Make the store, unopened: the processor opens it where its renewals are."""
    made: AbstractAsyncContextManager[CheckpointStore] = work.store.make()
    return made if isinstance(made, CheckpointStore) else LateStore(made)

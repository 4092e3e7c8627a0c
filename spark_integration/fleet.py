"""Processors hosted by Spark executors: the driver's side.

Each processor is the only task of a job of its own. Spark places it and tries it again when its
worker or executor dies; when Spark gives a job up, it is submitted anew. In one job for all, the
last permitted failure of one task would have Spark kill all others, without notice.
Which processor has which partition is none of Spark's business: they balance through the store.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from eventproc.config import Backoff
from eventproc.core.policy import backoff_s
from eventproc.errors import ConfigurationError
from eventproc.logs import get_logger
from spark_integration.fleet_board import FleetBoard
from spark_integration.fleet_desk import FleetDesk
from spark_integration.fleet_order import FleetOrder
from spark_integration.fleet_spark import FleetSpark
from spark_integration.fleet_status import FleetError, FleetStatistics, Report

RESTART_BACKOFF: Final = Backoff(first=timedelta(seconds=1), most=timedelta(seconds=30))
"""Before a job is submitted anew; Spark's own attempts, four in a cluster, come at once."""

STOP_EXTRA: Final = timedelta(seconds=10)
"""What a stop may take beyond the time after which a processor ends its process."""

KILLED_WITHIN_S: Final = 15.0
"""Spark kills the worker of a cancelled task within some seconds."""

STOP_LOOK_S: Final = 0.1

Progress = Callable[[FleetStatistics], object]


class Fleet:
    """Processors that run on the executors of a Spark application.

    ``run_on_executors`` makes it. As a context manager it is stopped at the end of the block.
    Its methods may be called from any thread.
    """

    def __init__(
        self,
        spark: FleetSpark,
        order: FleetOrder,
        board: FleetBoard,
        desk: FleetDesk,
        *,
        size: int,
    ) -> None:
        self._spark = spark
        self._order = order
        self._board = board
        self._desk = desk
        self._stop_timeout = order.stop_timeout + STOP_EXTRA
        self._log = get_logger("eventproc.spark.fleet", fleet=order.name)
        self._error: ConfigurationError | FleetError | None = None
        self._stopping = threading.Event()
        self._stop_lock = threading.Lock()
        self._is_closed = False
        self._restore_interrupt: Callable[[], None] = lambda: None
        self._ended = [threading.Event() for _ in range(size)]
        """Of each keeper. Ctrl-C in ``Thread.join`` makes Python 3.11 take the thread for ended."""

        self._keepers = [
            spark.thread(self._keep, slot, name=f"eventproc-fleet-{order.name}-{slot}")
            for slot in range(size)
        ]

    @property
    def name(self) -> str:
        """What the fleet is called; its processors' owner ids are this and a number."""
        return self._order.name

    def statistics(self) -> FleetStatistics:
        """How every processor does, as of its newest report."""
        return self._board.statistics()

    def __enter__(self) -> Self:
        """Return the fleet, which runs already."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop; raise what ended the fleet, if something did and nothing else is raised."""
        try:
            self.stop()
            self.wait()
        except (ConfigurationError, FleetError):
            if exc is None:
                raise

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the fleet has ended; return whether it has, within the time.

        Raises:
            ConfigurationError: it ended because a processor can never work.
            FleetError: it ended for another reason than ``stop``.
        """
        until_s = None if timeout is None else time.monotonic() + timeout.total_seconds()
        for ended in self._ended:
            if not ended.wait(None if until_s is None else max(0.0, until_s - time.monotonic())):
                return False
        self._close()
        if self._error is not None:
            raise self._error
        return True

    def stop(self, timeout: timedelta | None = None) -> None:
        """Stop every processor in good order, and return when all have ended.

        They finish the calls under way, checkpoint, and hand over or release their partitions.
        Stopping again is fine.

        Args:
            timeout: After this Spark kills what still runs; the processors' ``shutdown_timeout``
                and 15 seconds if not given.

        Raises:
            FleetError: some ended without order: a handler did not let them, and they had to be
                killed. What they had not checkpointed will be repeated, and their partitions wait
                for ``ownership_expiration``.
        """
        with self._stop_lock:
            if self._is_closed:
                return
            if not self._stopping.is_set():
                self._log.info("fleet_stopping")
            self._begin_stop()
            budget = self._stop_timeout if timeout is None else timeout
            until_s = time.monotonic() + budget.total_seconds()
            while self._running() and time.monotonic() < until_s:
                for slot in self._board.unheard():
                    self._spark.cancel(slot)
                time.sleep(STOP_LOOK_S)
            late = self._running()
            if late:
                self._kill(late)
            self._close()
            if cut := sorted({*late, *self._board.cut_short()}):
                raise FleetError(
                    f"{len(cut)} of {len(self._keepers)} processors of fleet {self.name} did not "
                    "stop in time and were killed: what they had not checkpointed will be "
                    "repeated. Give stop() and shutdown_timeout more time, or let calls end sooner"
                )

    def _kill(self, late: list[int]) -> None:
        self._log.error("fleet_killed", slots=late)
        for slot in late:
            self._spark.cancel(slot)
        for slot in late:
            self._ended[slot].wait(KILLED_WITHIN_S)

    def _running(self) -> list[int]:
        return [slot for slot, ended in enumerate(self._ended) if not ended.is_set()]

    def _begin_stop(self) -> None:
        self._stopping.set()
        self._desk.tell_stop()
        self._board.begin_stop()

    def _close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._begin_stop()
            self._desk.close()
            self._restore_interrupt()
            self._log.info("fleet_stopped")

    # Running.

    def start(self, timeout: timedelta) -> None:
        """Submit the jobs and wait until every processor serves.

        Raises:
            ConfigurationError: a processor can never work, or there is no place for all.
            FleetError: a processor could not start.
        """
        self._restore_interrupt = self._spark.spare_from_interrupt()
        for keeper in self._keepers:
            keeper.start()
        try:
            if not self._board.wait_until_all_serve(timeout.total_seconds(), self._stopping.is_set):
                self._fail(self._too_slow(timeout))
        except BaseException:  # Interrupted in a notebook: nobody will have a fleet to stop.
            self.stop()
            raise
        if self._error is not None:
            with contextlib.suppress(FleetError):
                self.stop()
            raise self._error
        self._log.info("fleet_started", processor_count=len(self._keepers))

    def _too_slow(self, timeout: timedelta) -> ConfigurationError | FleetError:
        if unplaced := self._board.unplaced():
            placed = len(self._keepers) - len(unplaced)
            return ConfigurationError(
                f"Spark has placed {placed} of {len(self._keepers)} processors within {timeout}; "
                f"it has room for {self._spark.room()} tasks at a time, all its jobs together. "
                "Each processor holds a place for as long as it runs: ask for fewer, give the "
                "application more cores, or let start_timeout be as long as they take to come"
            )
        return FleetError(f"not every processor was ready within {timeout}: {self.statistics()}")

    def report_progress(self, interval: timedelta, show: Progress | None) -> None:
        """Tell how the fleet does, again and again until it ends."""

        def tell() -> None:
            while not self._stopping.wait(interval.total_seconds()):
                if show is None:
                    now = self.statistics()
                    self._log.info(
                        "fleet_progress",
                        live=now.live_count,
                        owned=now.owned_count,
                        handled=now.handled_count,
                        lag=now.lag,
                        restarts=now.restart_count,
                    )
                else:
                    show(self.statistics())

        threading.Thread(target=tell, name="eventproc-fleet-progress", daemon=True).start()

    def _fail(self, error: ConfigurationError | FleetError) -> None:
        """End the whole fleet, in good order, because of this."""
        if self._error is None:
            self._error = error
        self._begin_stop()

    def _keep(self, slot: int) -> None:
        try:
            self._keep_running(slot)
        finally:
            self._ended[slot].set()

    def _keep_running(self, slot: int) -> None:
        """Have a job running for this slot until the fleet is to stop."""
        failure_count = 0
        while not self._stopping.is_set():
            begun_s = time.monotonic()
            error, is_hopeless = self._run_job(slot)
            if self._stopping.is_set():
                break
            if is_hopeless:
                self._fail(ConfigurationError(error))
            elif not self._board.has_served(slot):
                self._fail(FleetError(f"processor {self._order.owner_id(slot)}: {error}"))
            elif self._spark.is_stopped():
                self._fail(FleetError("the Spark application has ended"))
            else:
                if time.monotonic() - begun_s > RESTART_BACKOFF.most.total_seconds():
                    failure_count = 0
                failure_count += 1
                self._log.warning("fleet_member_lost", slot=slot, error=error)
                self._stopping.wait(
                    backoff_s(failure_count, first=RESTART_BACKOFF.first, most=RESTART_BACKOFF.most)
                )

    def _run_job(self, slot: int) -> tuple[str, bool]:
        """Return what ended it, and whether it would end like that each time."""
        self._board.begin(slot)
        ended = self._spark.run(self._order, slot)
        if isinstance(ended, Report):
            self._board.note(ended)
            return ended.error or "it ended", ended.is_hopeless
        if not self._stopping.is_set():
            self._board.note_failure(slot, ended)
        return ended, False

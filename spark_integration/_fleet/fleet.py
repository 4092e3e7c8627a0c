"""The driver's side of a fleet: submits one Spark job for each processor, and stops them.

Each processor is the only task of its own job. Spark schedules the task and retries it when its
worker or executor dies; when Spark gives up a job, the fleet submits it again. With one job for all
processors, Spark would kill all of them without notice when one task failed too often. Spark does
not assign partitions: the processors divide them through the store, as everywhere.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from eventproc._base.logs import error_text, get_logger
from eventproc._base.retries import Backoff, failures_in_a_row, waits
from eventproc.errors import ConfigurationError
from spark_integration._fleet.job import FleetJob
from spark_integration._fleet.jobs import FleetSpark
from spark_integration._fleet.members import MemberRegistry
from spark_integration._fleet.report_server import ReportServer
from spark_integration._fleet.statistics import FleetError, FleetStatistics, Report

RESTART_BACKOFF: Final = Backoff(initial=timedelta(seconds=1), maximum=timedelta(seconds=30))
"""Waits before a job is submitted again. Spark's own retries, three in a cluster, do not wait."""

STOP_EXTRA: Final = timedelta(seconds=10)
"""How long ``stop`` waits, on top of the time after which a processor ends its process."""

KILLED_WITHIN_S: Final = 15.0
"""How long to wait for cancelled tasks. Spark kills their workers within some seconds."""

STOP_POLL_S: Final = 0.1

Progress = Callable[[FleetStatistics], object]


class Fleet:
    """Processors that run on the executors of a Spark application.

    Returned by ``run_on_executors``. As a context manager it stops at the end of the block. All
    methods are thread-safe.
    """

    __module__ = "spark_integration"

    def __init__(
        self,
        spark: FleetSpark,
        job: FleetJob,
        registry: MemberRegistry,
        report_server: ReportServer,
        *,
        size: int,
    ) -> None:
        self._spark = spark
        self._job = job
        self._registry = registry
        self._report_server = report_server
        self._stop_timeout = job.stop_timeout + STOP_EXTRA
        self._log = get_logger("eventproc.spark.fleet", fleet=job.name)
        self._error: ConfigurationError | FleetError | None = None
        self._stopping = threading.Event()
        self._stop_lock = threading.Lock()
        self._is_closed = False
        self._restore_interrupt: Callable[[], None] = lambda: None
        self._ended = [threading.Event() for _ in range(size)]
        """One event for each runner. ``Thread.join`` is not used, because after Ctrl-C in it Python
        3.11 regards the thread as ended."""

        self._runners = [
            spark.thread(self._run_slot, slot, name=f"eventproc-fleet-{job.name}-{slot}")
            for slot in range(size)
        ]

    @property
    def name(self) -> str:
        """The fleet's name. Its processors' owner ids are this and a number."""
        return self._job.name

    def statistics(self) -> FleetStatistics:
        """The newest statistics of every processor."""
        return self._registry.statistics()

    def __enter__(self) -> Self:
        """Return the fleet, which is already running."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop. Raise the error that ended the fleet, unless the block raised one."""
        try:
            self.stop()
            self.wait()
        except (ConfigurationError, FleetError):
            if exc is None:
                raise

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the fleet has ended; return whether it has ended within the time-out.

        Raises:
            ConfigurationError: it ended because a processor cannot work as configured.
            FleetError: it ended because of another error.
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
        """Stop every processor gracefully, and return when all have ended.

        They finish the calls under way, checkpoint, and hand over or release their partitions.
        Further calls do nothing.

        Args:
            timeout: After this, Spark kills the processors that still run. By default 15 seconds
                more than their ``shutdown_timeout``.

        Raises:
            FleetError: some processors had to be killed, because a handler did not return, or
                because they had not reported for ten seconds. The events after
                their last checkpoints will be delivered again, and their partitions have no live
                owner until ``ownership_expiration`` has passed.
        """
        with self._stop_lock:
            if self._is_closed:
                return
            if not self._stopping.is_set():
                self._log.info("fleet_stopping")
            self._begin_stop()
            budget = self._stop_timeout if timeout is None else timeout
            until_s = time.monotonic() + budget.total_seconds()
            while (running := self._running()) and time.monotonic() < until_s:
                for slot in self._registry.silent_slots():
                    if slot in running:
                        self._registry.give_up(slot)
                    self._spark.cancel(slot)
                time.sleep(STOP_POLL_S)
            late = self._running()
            if late:
                self._kill(late)
            self._close()
            if cut := sorted({*late, *self._registry.cut_short()}):
                raise FleetError(
                    f"{len(cut)} of {len(self._runners)} processors of fleet {self.name} did not "
                    "stop in time and were killed: events after their last checkpoints will be "
                    "delivered again. Give stop() and shutdown_timeout more time, or make the "
                    "handler's calls shorter"
                )

    def _kill(self, late: list[int]) -> None:
        self._log.error("fleet_members_killed", slots=late)
        for slot in late:
            self._spark.cancel(slot)
        for slot in late:
            self._ended[slot].wait(KILLED_WITHIN_S)

    def _running(self) -> list[int]:
        return [slot for slot, ended in enumerate(self._ended) if not ended.is_set()]

    def _begin_stop(self) -> None:
        self._stopping.set()
        self._report_server.request_stop()
        self._registry.begin_stop()

    def _close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._begin_stop()
            self._report_server.close()
            self._restore_interrupt()
            self._log.info("fleet_stopped")

    # --- starting and running ---

    def start(self, timeout: timedelta) -> None:
        """Submit the jobs and wait until every processor serves.

        Raises:
            ConfigurationError: a processor cannot work as configured, or there are too few task
                slots.
            FleetError: a processor could not start.
        """
        self._restore_interrupt = self._spark.detach_sigint()
        for runner in self._runners:
            runner.start()
        try:
            if not self._registry.wait_until_all_serve(
                timeout.total_seconds(), self._stopping.is_set
            ):
                self._fail(self._start_timed_out(timeout))
        except BaseException:  # For example Ctrl-C: the caller has no fleet to stop yet.
            self.stop()
            raise
        if self._error is not None:
            with contextlib.suppress(FleetError):
                self.stop()
            raise self._error
        self._log.info("fleet_started", processor_count=len(self._runners))

    def _start_timed_out(self, timeout: timedelta) -> ConfigurationError | FleetError:
        if unplaced := self._registry.unplaced():
            placed = len(self._runners) - len(unplaced)
            return ConfigurationError(
                f"Spark has placed {placed} of {len(self._runners)} processors within {timeout}; "
                f"it has room for {self._spark.task_slot_count()} tasks at a time, in all jobs. "
                "Each processor occupies a task slot while it runs: ask for fewer, give the "
                "application more cores, or give start_timeout the time that they take to come"
            )
        return FleetError(f"not every processor was ready within {timeout}: {self.statistics()}")

    def report_progress(self, interval: timedelta, show: Progress | None) -> None:
        """Show or log the fleet's statistics at this interval until it ends."""

        def run() -> None:
            while not self._stopping.wait(interval.total_seconds()):
                if show is None:
                    current = self.statistics()
                    self._log.info(
                        "fleet_progress",
                        live=current.live_count,
                        owned=current.owned_count,
                        handled=current.handled_count,
                        lag=current.lag,
                        restarts=current.restart_count,
                    )
                else:
                    try:
                        show(self.statistics())
                    except Exception as error:  # noqa: BLE001 - the user's code
                        self._log.warning("fleet_progress_failed", error=error_text(error))

        threading.Thread(target=run, name="eventproc-fleet-progress", daemon=True).start()

    def _fail(self, error: ConfigurationError | FleetError) -> None:
        """Stop the whole fleet gracefully; ``wait`` raises the first error given here."""
        if self._error is None:
            self._error = error
        self._begin_stop()

    def _run_slot(self, slot: int) -> None:
        try:
            self._keep_running(slot)
        finally:
            self._ended[slot].set()

    def _keep_running(self, slot: int) -> None:
        """Submit jobs for this slot, one after another, until the fleet stops."""
        failure_count = 0
        wait_s = waits(RESTART_BACKOFF)
        while not self._stopping.is_set():
            begun_s = time.monotonic()
            error, is_permanent = self._run_job(slot)
            if self._stopping.is_set():
                break
            if is_permanent:
                self._fail(ConfigurationError(error))
            elif not self._registry.has_served(slot):
                self._fail(FleetError(f"processor {self._job.owner_id(slot)}: {error}"))
            elif self._spark.is_stopped():
                self._fail(FleetError("the Spark application has ended"))
            else:
                ran_s = time.monotonic() - begun_s
                failure_count = failures_in_a_row(failure_count, ran_s, RESTART_BACKOFF)
                self._log.warning("fleet_member_lost", slot=slot, error=error)
                self._stopping.wait(wait_s(failure_count))

    def _run_job(self, slot: int) -> tuple[str, bool]:
        """Run one job; return why it ended, and whether every further attempt would fail."""
        self._registry.begin(slot)
        ended = self._spark.run(self._job, slot)
        if isinstance(ended, Report):
            self._registry.note(ended)
            return ended.error or "it ended", ended.is_permanent
        if not self._stopping.is_set():
            self._registry.note_failure(slot, ended)
        return ended, False

"""What a fleet needs of Spark: check settings, run and cancel jobs.

PySpark is imported in functions, because importing the package must work without it.
"""

import signal
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from eventproc.errors import ConfigurationError
from spark_integration._fleet.job import FleetJob, FleetWork
from spark_integration._fleet.statistics import Report, decode
from spark_integration._fleet.task import serve_slots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ERROR_LINES_MAX: Final = 3
"""Most lines of a Spark error that go into a report, if it has no Python exception."""


def check_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings by which Spark kills or repeats long tasks that return no rows.

    Speculation alone is harmless, because it compares tasks of one stage, and a fleet's stages
    have one task each. So is dynamic allocation: an executor with a running task is never idle.

    Raises:
        ConfigurationError: such a setting is on.
    """

    def is_on(name: str) -> bool:
        return settings.get(name, "false").lower() == "true"

    if is_on("spark.speculation") and "spark.speculation.task.duration.threshold" in settings:
        raise ConfigurationError(
            "spark.speculation with spark.speculation.task.duration.threshold starts a second "
            "attempt of every long-running task, such as those of a fleet: switch it off"
        )
    idle_timeout = settings.get("spark.python.worker.idleTimeoutSeconds", "0")
    if is_on("spark.python.worker.killOnIdleTimeout") and idle_timeout.rstrip("s") != "0":
        raise ConfigurationError(
            "spark.python.worker.killOnIdleTimeout kills workers that return no rows for a "
            "while, such as those of a fleet: switch it off"
        )


class FleetSpark:
    """One Spark application, which runs the jobs of a fleet."""

    def __init__(self, spark: "SparkSession") -> None:
        """Read the addresses and the application's id from the session.

        Raises:
            ConfigurationError: it is a session of Spark Connect.
        """
        context = getattr(spark, "_jsc", None) or getattr(spark, "_sc", None)
        if context is None:
            raise ConfigurationError(
                "this is a session of Spark Connect, but a fleet needs the calling Python program "
                "to be the driver: run it on the cluster, by spark-submit"
            )
        self._context = spark.sparkContext
        settings = self._context.getConf()
        self.application_id: str = self._context.applicationId
        self.driver_host: str = settings.get("spark.driver.host", "127.0.0.1")
        self.bind_address: str = settings.get("spark.driver.bindAddress", self.driver_host)
        self._group = f"eventproc-fleet-{self.application_id}-{id(self):x}"

    def check(self, processors: int) -> None:
        """Check the settings and, in local mode, that there are enough task slots.

        Raises:
            ConfigurationError: a setting would break the fleet, or there are too few task slots.
        """
        check_settings(dict(self._context.getConf().getAll()))
        if self._context.master.split("[")[0] == "local" and processors > self.task_slot_count():
            raise ConfigurationError(
                f"processors is {processors}, and {self._context.master} has room for "
                f"{self.task_slot_count()} tasks at a time: ask for fewer, or give it more cores"
            )

    def task_slot_count(self) -> int:
        """How many tasks the present executors can run at a time."""
        core = self._context._jsc.sc()  # noqa: SLF001 - Spark offers no other way
        profile = core.resourceProfileManager().defaultResourceProfile()
        return int(core.maxNumConcurrentTasks(profile))

    def pickle(self, work: FleetWork) -> bytes:
        """Pickle the work, with code of the main program by value, as Spark pickles functions.

        Raises:
            ConfigurationError: it cannot be pickled.
        """
        from pyspark import cloudpickle  # noqa: PLC0415 - an extra

        try:
            pickled: bytes = cloudpickle.dumps(work)
        except Exception as error:
            raise ConfigurationError(
                f"the handler or a setting cannot be sent to the executors: {error}. Give the "
                "handler as module:Class, and let it open connections in initialize()"
            ) from error
        return pickled

    def thread(self, target: Callable[[int], None], slot: int, *, name: str) -> threading.Thread:
        """Make a daemon thread that inherits the Spark properties of the calling one."""
        from pyspark import InheritableThread  # noqa: PLC0415 - an extra

        thread: threading.Thread = InheritableThread(
            target=target, args=(slot,), name=name, daemon=True
        )
        return thread

    def run(self, job: FleetJob, slot: int) -> Report | str:
        """Run a slot's job until it ends; return its last report, or the error that ended it."""
        self._context.setJobGroup(
            self._group_of(slot),
            f"eventproc fleet {job.name}: processor {slot}",
            True,  # noqa: FBT003 - interruptOnCancel
        )
        try:
            slots = self._context.parallelize([slot], 1)
            (last,) = slots.mapPartitions(partial(serve_slots, job)).collect()
            return decode(last, job.token)
        except Exception as error:  # noqa: BLE001 - Spark's errors have no common root
            return _error_summary(error)

    @staticmethod
    def detach_sigint() -> Callable[[], None]:
        """Make Ctrl-C only raise ``KeyboardInterrupt``; return a function that undoes this.

        PySpark's own handler cancels all jobs first, which would kill all processors. Outside of
        the main thread this does nothing, because only that one gets and sets signal handlers.
        """
        return _INTERRUPT.detach()

    def cancel(self, slot: int) -> None:
        """Make Spark kill a slot's job, without notice to the task."""
        if not self.is_stopped():
            self._context.cancelJobGroup(self._group_of(slot))

    def is_stopped(self) -> bool:
        """Whether the application has ended."""
        running = self._context._jsc  # noqa: SLF001 - Spark offers no other way
        try:
            return running is None or bool(running.sc().isStopped())
        except Exception:  # noqa: BLE001 - Java has ended; its errors have no common root
            return True

    def _group_of(self, slot: int) -> str:
        return f"{self._group}-{slot}"


class _Interrupt:
    """Ctrl-C in this process: PySpark's handler is away while a fleet runs, however many do."""

    def __init__(self) -> None:
        self._fleet_count = 0
        self._before: Any = signal.SIG_DFL

    def detach(self) -> Callable[[], None]:
        """Set Python's own handler; return a function that the fleet calls once, at its end."""
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        if self._fleet_count == 0:
            self._before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self._fleet_count += 1
        return self._restore

    def _restore(self) -> None:
        self._fleet_count -= 1
        is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        is_main = threading.current_thread() is threading.main_thread()
        if self._fleet_count == 0 and is_ours and is_main:
            signal.signal(signal.SIGINT, self._before)


_INTERRUPT: Final = _Interrupt()


def _error_summary(error: Exception) -> str:
    """Return the first and the last Python exception in an error of Spark, or its first lines."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [
        line
        for line in lines
        if line.split(":")[0].endswith(("Error", "Exception")) and ": " in line
    ]
    selected = python[:1] + python[-1:] if python else lines[:ERROR_LINES_MAX]
    return " / ".join(dict.fromkeys(selected)) or repr(error)

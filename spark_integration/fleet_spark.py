"""What a fleet asks of Spark: places, jobs, and their end.

Imports Spark where it is used: who imports the package may not have it.
"""

import signal
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from eventproc.errors import ConfigurationError
from spark_integration.fleet_order import FleetOrder, FleetWork
from spark_integration.fleet_status import Report, decode
from spark_integration.fleet_worker import serve_slots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ERROR_LINES_MAX: Final = 3
"""Of a Python traceback in an error of Spark: the last ones say what happened."""


def check_settings(settings: Mapping[str, str]) -> None:
    """Refuse what would have Spark disturb a task that runs for ever and returns nothing.

    Speculation alone does not: the only task of a stage is compared with no other. Nor does
    dynamic allocation: an executor with a running task is never idle.

    Raises:
        ConfigurationError: one of these is on.
    """

    def is_on(name: str) -> bool:
        return settings.get(name, "false").lower() == "true"

    if is_on("spark.speculation") and "spark.speculation.task.duration.threshold" in settings:
        raise ConfigurationError(
            "spark.speculation with spark.speculation.task.duration.threshold starts a second "
            "attempt of every task that runs long, as a fleet's do: switch it off"
        )
    idle_timeout = settings.get("spark.python.worker.idleTimeoutSeconds", "0")
    if is_on("spark.python.worker.killOnIdleTimeout") and idle_timeout.rstrip("s") != "0":
        raise ConfigurationError(
            "spark.python.worker.killOnIdleTimeout kills workers that return no rows for a "
            "while, as a fleet's do: switch it off"
        )


class FleetSpark:
    """One Spark application, as the host of a fleet."""

    def __init__(self, spark: "SparkSession") -> None:
        """Look at the session.

        Raises:
            ConfigurationError: it is one of Spark Connect.
        """
        context = getattr(spark, "_jsc", None) or getattr(spark, "_sc", None)
        if context is None:
            raise ConfigurationError(
                "this is a session of Spark Connect, and a fleet needs its driver to be the Python "
                "program that calls: run that on the cluster, by spark-submit"
            )
        self._context = spark.sparkContext
        settings = self._context.getConf()
        self.application_id: str = self._context.applicationId
        self.driver_host: str = settings.get("spark.driver.host", "127.0.0.1")
        self.bind_address: str = settings.get("spark.driver.bindAddress", self.driver_host)
        self._group = f"eventproc-fleet-{self.application_id}-{id(self):x}"

    def check(self, processors: int) -> None:
        """Refuse settings that would break a fleet, and more processors than there can be room for.

        Raises:
            ConfigurationError: one of these.
        """
        check_settings(dict(self._context.getConf().getAll()))
        if self._context.master.split("[")[0] == "local" and processors > self.room():
            raise ConfigurationError(
                f"processors is {processors}, and {self._context.master} has room for "
                f"{self.room()} tasks at a time: ask for fewer, or give it more cores"
            )

    def room(self) -> int:
        """How many tasks the executors that are there can run at a time."""
        core = self._context._jsc.sc()  # noqa: SLF001 - Spark offers no other way
        profile = core.resourceProfileManager().defaultResourceProfile()
        return int(core.maxNumConcurrentTasks(profile))

    def pickle(self, work: FleetWork) -> bytes:
        """Pickle by value what only this program has, as Spark does with functions.

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
        """Make a thread that may submit jobs; it has the settings of the calling one."""
        from pyspark import InheritableThread  # noqa: PLC0415 - an extra

        thread: threading.Thread = InheritableThread(
            target=target, args=(slot,), name=name, daemon=True
        )
        return thread

    def run(self, order: FleetOrder, slot: int) -> Report | str:
        """Run a slot's job to its end; return its last report, or why there is none."""
        self._context.setJobGroup(
            self._group_of(slot),
            f"eventproc fleet {order.name}: processor {slot}",
            True,  # noqa: FBT003 - Spark's own
        )
        try:
            places = self._context.parallelize([slot], 1)
            (last,) = places.mapPartitions(partial(serve_slots, order)).collect()
            return decode(last, order.token)
        except Exception as error:  # noqa: BLE001 - Spark's errors have no common root
            return _story(error)

    @staticmethod
    def spare_from_interrupt() -> Callable[[], None]:
        """Let Ctrl-C only interrupt; return what takes that back.

        PySpark's own way is to cancel all jobs first, which would have all processors killed. Only
        a main thread may, and needs to, say so.
        """
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        before = signal.signal(signal.SIGINT, signal.default_int_handler)

        def restore() -> None:
            is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
            if is_ours and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, before)

        return restore

    def cancel(self, slot: int) -> None:
        """Have Spark kill a slot's job, without notice to the task."""
        if not self.is_stopped():
            self._context.cancelJobGroup(self._group_of(slot))

    def is_stopped(self) -> bool:
        """Whether the application has ended."""
        running = self._context._jsc  # noqa: SLF001 - Spark offers no other way
        try:
            return running is None or bool(running.sc().isStopped())
        except Exception:  # noqa: BLE001 - Java itself has ended; the errors have no common root
            return True

    def _group_of(self, slot: int) -> str:
        return f"{self._group}-{slot}"


def _story(error: Exception) -> str:
    """Return the end of the worker's traceback, where there is one, and what Spark says else."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [
        line
        for line in lines
        if line.split(":")[0].endswith(("Error", "Exception")) and ": " in line
    ]
    told = python[:1] + python[-1:] if python else lines[:ERROR_LINES_MAX]
    return " / ".join(dict.fromkeys(told)) or repr(error)

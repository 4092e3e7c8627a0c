"""A local Spark cluster of two executor processes, with the two queries of the demo.

This is the only module of the command that imports Spark.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming import StreamingQuery

from eventproc.cli.access.hub import HUB_VARIABLE
from eventproc.cli.access.storage import STORAGE_VARIABLE
from eventproc.cli.demo.hub import HANDLER, HUB, HubStage
from eventproc.cli.demo.spark.weeks import Figures, Weeks
from eventproc.errors import EventProcError
from spark_integration.registration import register

EXECUTORS: Final = 2
MEMORY_MB: Final = 1024
"""The memory of each executor."""

JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""In a run this short, optimizing takes longer than it saves: 96 seconds, and 70 without it."""

FLIGHT: Final = "`from` string, departed string, miles int, late_min int"
"""The columns of a flight that the aggregate needs."""

FROM_MONDAY: Final = "4 days"
"""Spark counts windows of 7 days from 1970-01-01, a Thursday."""

_LOG: Final = """
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
"""

_SPARK_ERRORS: Final = (PySparkException, Py4JError)
"""PySpark does not convert all errors of Java to its own."""


class QueryFailedError(EventProcError):
    """A query of the demo failed; the message is Spark's."""


class Cluster:
    """A Spark session with two queries on the same flights. ``open_cluster`` makes it."""

    def __init__(self, spark: SparkSession, stage: HubStage, events_per_batch: int) -> None:
        self._spark = spark
        self._stage = stage
        self._events_per_batch = events_per_batch
        self._queries: list[StreamingQuery] = []
        self.weeks: Weeks = {}
        """The current result of the aggregate."""

    def start(self) -> None:
        """Start both queries, the sink and the aggregate. May be called in any thread.

        Raises:
            QueryFailedError: A query does not start.
        """
        try:
            register(self._spark)
            self._start()
        except _SPARK_ERRORS as error:
            raise QueryFailedError(f"a query does not start: {_message_of(error)}") from error

    def _start(self) -> None:
        source = {
            "connectionString": f"env:{HUB_VARIABLE}",
            "eventHubName": HUB,
            "startingPosition": "earliest",
            "maxEventsPerTrigger": str(self._events_per_batch),
            "maxTasks": str(EXECUTORS),
        }
        store = {"checkpointStore": self._stage.note.spec}
        if store["checkpointStore"].startswith("blob:"):
            store["storageConnectionString"] = f"env:{STORAGE_VARIABLE}"
        rows = self._spark.readStream.format("eventproc").options(**source)
        needed = rows.schema(
            "body binary, partition string, offset string, sequenceNumber bigint, "
            "enqueuedTime timestamp"
        ).load()
        sink = needed.writeStream.format("eventproc").options(
            handler=HANDLER, connectionString=f"env:{HUB_VARIABLE}", eventHubName=HUB, **store
        )
        flight = sql.from_json(sql.col("body").cast("string"), FLIGHT)
        flights = (
            rows.schema("body binary").load().select(flight.alias("flight")).select("flight.*")
        )
        day = sql.to_timestamp(sql.substring("departed", 1, 10))
        weeks = (
            flights.groupBy(sql.window(day, "7 days", startTime=FROM_MONDAY), "from")
            .agg(
                sql.count("*").alias("flights"),
                sql.sum("miles").alias("miles"),
                sql.sum(sql.greatest("late_min", sql.lit(0))).alias("late_min"),
            )
            .select(sql.date_format("window.start", "yyyy-MM-dd").alias("week"), "*")
        )
        aggregate = weeks.writeStream.outputMode("update").foreachBatch(self._take_in)
        for name, writer in (("sink", sink), ("aggregate", aggregate)):
            offsets = str(self._stage.folder / f"{name}-offsets")
            self._queries.append(writer.option("checkpointLocation", offsets).start())

    def _take_in(self, batch: DataFrame, _: int) -> None:
        """Store the figures that a batch has changed. Idempotent."""
        self.weeks |= {
            (row["week"], row["from"]): Figures(row["flights"], row["miles"], row["late_min"])
            for row in batch.collect()
        }

    def batch_count(self) -> int:
        """Return how many batches the sink has committed; 0 before ``start``.

        Raises:
            QueryFailedError: A query failed.
        """
        for query in self._queries:
            if (error := query.exception()) is not None:
                raise QueryFailedError(f"a query failed: {_message_of(error)}")
        sinks = self._queries[:1]
        return sum(bool(entry.numInputRows) for sink in sinks for entry in sink.recentProgress)

    def stop(self) -> None:
        """Stop the queries."""
        for query in self._queries:
            query.stop()


@contextmanager
def open_cluster(stage: HubStage, events_per_batch: int) -> Iterator[Cluster]:
    """Start Java, a master, two workers in it, and an executor process of each.

    Raises:
        QueryFailedError: Spark does not start.
    """
    os.environ |= {**stage.environment, "PYSPARK_PYTHON": sys.executable}
    settings = stage.folder / "log4j2.properties"
    settings.write_text(_LOG.format(file=stage.folder / "spark.log"), encoding="utf-8")
    java = f"{JAVA} -Dlog4j2.configurationFile={settings}"
    builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS},1,{MEMORY_MB}]")
    for name, value in {
        "spark.app.name": "eventproc-demo",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.memory": f"{MEMORY_MB}m",
        "spark.executor.extraJavaOptions": JAVA,
        "spark.local.dir": str(stage.folder),
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(EXECUTORS),
        "spark.sql.warehouse.dir": str(stage.folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    try:
        with _stderr_to(stage.folder / "java.log"):
            spark = builder.getOrCreate()
    except _SPARK_ERRORS as error:
        raise QueryFailedError(f"Spark does not start: {_message_of(error)}") from error
    cluster = Cluster(spark, stage, events_per_batch)
    home = Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent))
    work = home / "work" / spark.sparkContext.applicationId
    try:
        yield cluster
    finally:
        with suppress(Exception):  # Whatever it says now: it ends.
            cluster.stop()
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)  # Spark does not delete the executors' output.


def _message_of(error: Exception) -> str:
    """Return the message of a Spark error without its tracebacks, which are indented."""
    lines = [line for line in str(error).splitlines() if line and not line[0].isspace()]
    return " ".join(line for line in lines if not line.startswith(("Traceback", "JVM stack")))


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect standard error to a file: Java's launcher prints warnings to it."""
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)

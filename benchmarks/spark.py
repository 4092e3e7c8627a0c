"""How fast Spark reads a hub and runs handlers, on the emulator: all candidates in one run.

    python benchmarks/spark.py                       # a table
    python benchmarks/spark.py --format json         # for programs
    python benchmarks/spark.py --quick               # whether it runs; the figures mean little

The candidates, all with bodies of ``--body`` bytes, in batches of ``--batch`` rows and two tasks:

- *rate -> noop*: Spark's own JVM source and sink: what Spark costs by itself;
- *made -> noop*, *made -> nothing*: the bounds of any source in Python, and of any source and sink
  in Python: Arrow batches that are returned repeatedly, and a writer that does nothing;
- *made -> sink, ...*: the same rows into our sink: the cost of the sink without the hub;
- *made -> hub*, *made -> hub, keys*: the bodies of the same rows, published to another hub of the
  emulator, without a key, and with one of 100 keys; in batches of a tenth of the rows;
- *hub -> ...*: our source, into ``noop``, and into the sink with a handler that takes columns or
  events;
- *kafka -> ...*, *kafka (Spark's) -> ...*: the same events in a topic of Apache Kafka, read by our
  source (``KafkaEventSource``) and by Spark's own, which is Java alone: its rows get the names and
  types of the five columns.

Sinks get the five columns that a sink needs. Rows per second and CPU time are of the batches
after the first one, which pays for starting Python processes. CPU time is that of Java and
all its Python processes, without the emulator's and the broker's; ``rows_per_s`` shares the cores
with them. Spark's source for Kafka is one of Spark 4.2: `make .tools/kafka_source/.done`.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

import spark_integration
from benchmarks import _spark_handlers, kafka
from benchmarks._hub import emulator_with, equal_events, fill
from benchmarks._rows import Row, print_rows
from benchmarks._rows import options as options_of_all
from benchmarks._spark_time import ProcessorTime
from tests.servers.kafka_broker import KafkaBroker

HUB: Final = "bench"
PUBLISHED: Final = "published"
KEYS: Final = 100

NEEDED: Final = (
    "body binary, partition string, offset string, sequenceNumber bigint, enqueuedTime timestamp"
)
"""The columns that a sink needs."""

OF_KAFKA: Final = (
    "value body",
    "string(partition)",
    "string(offset)",
    "offset sequenceNumber",
    "timestamp enqueuedTime",
)
"""The same columns of rows from Spark's own source."""

KAFKA_JARS: Final = sorted((Path(__file__).parents[1] / ".tools/kafka_source/jars").glob("*.jar"))


class Figures(NamedTuple):
    """The result of one query."""

    rows_per_s: float
    cpu_us: float
    """Processor microseconds for each row."""

    batch_ms: float
    """What a batch takes; with small batches, its fixed cost. The median."""

    log_ms: float
    """How much of it Spark needs to write its offset log and its commit log."""


WriteTo = Callable[[DataStreamWriter, Path], DataStreamWriter]
"""Sets the output of a query; its second argument is a folder that it may use."""


# --- Spark ----------------------------------------------------------------------------------------


def run_query(frame: DataFrame, write_to: WriteTo, batches: int | None = None) -> Figures:
    """Measure one query without its start.

    Args:
        frame: The rows, read as fast as possible.
        write_to: Sets the output.
        batches: Stop the query after this many; by default it ends by itself.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        writer = write_to(frame.writeStream, Path(folder))
        writer = writer.option("checkpointLocation", f"{folder}/offsets")
        query = writer.trigger(availableNow=True).start() if batches is None else writer.start()
        while not query.recentProgress and query.isActive:
            time.sleep(0.01)
        used, noted = ProcessorTime(), len(query.recentProgress)
        while query.isActive and (batches is None or len(query.recentProgress) < batches):
            used.wait()
        done = [entry for entry in query.recentProgress[noted:] if entry.numInputRows]
        cpu_s = used.seconds
        query.stop()
    if (error := query.exception()) is not None:
        raise error
    rows = sum(entry.numInputRows for entry in done)
    took_ms = [entry.durationMs for entry in done]
    batches_ms = [took["triggerExecution"] for took in took_ms]
    logs_ms = [took["walCommit"] + took["commitOffsets"] for took in took_ms]
    return Figures(
        rows_per_s=1e3 * rows / sum(batches_ms),
        cpu_us=1e6 * cpu_s / rows,
        batch_ms=statistics.median(batches_ms),
        log_ms=statistics.median(logs_ms),
    )


# --- outputs --------------------------------------------------------------------------------------


def to_noop(writer: DataStreamWriter, _: Path) -> DataStreamWriter:
    return writer.format("noop")


def to_nothing(writer: DataStreamWriter, _: Path) -> DataStreamWriter:
    return writer.format("bound")


def group(folder: Path) -> dict[str, str]:
    """Return the options of a sink that say whose checkpoints it writes, and where to."""
    return {
        "fullyQualifiedNamespace": HUB,
        "eventHubName": HUB,
        "checkpointStore": f"sqlite:{folder}/group.db",
    }


def to_handler(name: str) -> WriteTo:
    def write_to(writer: DataStreamWriter, folder: Path) -> DataStreamWriter:
        handler = f"benchmarks._spark_handlers:{name}"
        return writer.format("eventproc").options(handler=handler, **group(folder))

    return write_to


def to_hub(conn_str: str) -> WriteTo:
    given = {
        "publish": "eventhub",
        "connectionString": conn_str.replace(f"EntityPath={HUB}", f"EntityPath={PUBLISHED}"),
    }
    return lambda writer, _: writer.format("eventproc").options(**given)


def candidates(
    spark: SparkSession, conn_str: str, options: argparse.Namespace
) -> dict[str, Callable[[], Figures]]:
    """Return the candidates by name."""
    batches = options.events // options.batch

    def ours(schema: str | None, **source: str) -> DataFrame:
        stream = spark.readStream.format("eventproc").options(
            startingPosition="earliest",
            maxEventsPerTrigger=str(options.batch),
            maxTasks="2",
            **source,
        )
        return (stream.schema(schema) if schema else stream).load()

    def hub(schema: str | None) -> DataFrame:
        return ours(schema, connectionString=conn_str)

    def topic() -> DataFrame:
        return ours(NEEDED, sourceRecipe="benchmarks._spark_handlers:kafka_topic")

    def topic_of_java() -> DataFrame:
        servers, topic = os.environ[_spark_handlers.KAFKA].split("/")
        stream = spark.readStream.format("kafka").options(
            subscribe=topic,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=str(options.batch),
        )
        return stream.option("kafka.bootstrap.servers", servers).load().selectExpr(*OF_KAFKA)

    def rate() -> DataFrame:
        given = {"rowsPerBatch": str(options.batch), "numPartitions": "2"}
        return spark.readStream.format("rate-micro-batch").options(**given).load()

    def made(rows: int = options.batch) -> DataFrame:
        given = {"rowsPerBatch": str(rows), "tasks": "2", "body": str(options.body)}
        return spark.readStream.format("bound").options(**given).load()

    def outgoing(*keys: str) -> DataFrame:
        return made(options.batch // 10).selectExpr("body", *keys)

    columns, events = to_handler("Columns"), to_handler("Events")
    published, key = to_hub(conn_str), f"string(sequenceNumber % {KEYS}) partitionKey"
    return {
        "rate -> noop": lambda: run_query(rate(), to_noop, batches),
        "made -> noop": lambda: run_query(made(), to_noop, batches),
        "made -> nothing": lambda: run_query(made(), to_nothing, batches),
        "made -> sink, columns": lambda: run_query(made(), columns, batches),
        "made -> sink, events": lambda: run_query(made(), events, batches),
        "made -> hub": lambda: run_query(outgoing(), published, batches),
        "made -> hub, keys": lambda: run_query(outgoing(key), published, batches),
        "hub, all columns -> noop": lambda: run_query(hub(None), to_noop),
        "hub -> noop": lambda: run_query(hub(NEEDED), to_noop),
        "hub -> sink, columns": lambda: run_query(hub(NEEDED), columns),
        "hub -> sink, events": lambda: run_query(hub(NEEDED), events),
        "kafka -> noop": lambda: run_query(topic(), to_noop),
        "kafka (Spark's) -> noop": lambda: run_query(topic_of_java(), to_noop),
        "kafka -> sink, columns": lambda: run_query(topic(), columns),
        "kafka (Spark's) -> sink, columns": lambda: run_query(topic_of_java(), columns),
    }


def session() -> SparkSession:
    """Return a small local Spark."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.jars", ",".join(map(str, KAFKA_JARS)))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark_integration.register(spark)
    spark.dataSource.register(_spark_handlers.Bound)
    return spark


QUICK: Final = {"events": 8_000, "batch": 4_000, "rounds": 1}
FULL: Final = {"events": 800_000, "batch": 200_000, "rounds": 3}


def arguments() -> argparse.Namespace:
    parser = options_of_all(__doc__)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--events", type=int, help="in the backlog")
    parser.add_argument("--batch", type=int, help="rows in a micro-batch")
    parser.add_argument("--body", type=int, default=100, help="bytes in an event")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", nargs="+", help="candidates, by their names")
    options = parser.parse_args()
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def report(found: Mapping[str, Sequence[Figures]]) -> list[Row]:
    """Return the medians over the rounds.

    *Of rate* are the rows per second as a part of those of *rate -> noop*, and *times made* is the
    CPU time as a multiple of that of *made -> noop* in the same round.
    """
    medians = {
        name: Figures(*map(statistics.median, zip(*figures, strict=True)))
        for name, figures in found.items()
    }
    rate = medians.get("rate -> noop")
    made = [figures.cpu_us for figures in found.get("made -> noop", ())]
    rows: list[Row] = []
    for name, median in medians.items():
        ratios = [one.cpu_us / bound for one, bound in zip(found[name], made, strict=False)]
        rows.append(
            {
                "candidate": name,
                "rows_per_s": round(median.rows_per_s),
                "cpu_us_per_row": round(median.cpu_us, 2),
                "of_rate": round(median.rows_per_s / rate.rows_per_s, 3) if rate else None,
                "times_made": round(statistics.median(ratios), 2) if ratios else None,
                "batch_ms": round(median.batch_ms),
                "log_ms": round(median.log_ms),
            }
        )
    return rows


def main() -> None:
    options = arguments()
    wanted = options.only or ["hub", "kafka"]
    reads_hub, reads_kafka = (
        any(name.startswith(hub) for name in wanted) for hub in ("hub", "kafka")
    )
    found: dict[str, list[Figures]] = {}
    with ExitStack() as stack:
        if reads_kafka:  # before Java, which hands this variable to its Python processes
            broker = stack.enter_context(KafkaBroker())
            os.environ[_spark_handlers.KAFKA] = f"{broker.bootstrap_servers}/{kafka.TOPIC}"
            kafka.fill(broker.bootstrap_servers, options.partitions, options.events, options.body)
        spark = session()
        hubs = dict.fromkeys((HUB, PUBLISHED), options.partitions)
        emulator = stack.enter_context(emulator_with(hubs))
        conn_str = emulator.connection_strings[HUB]
        in_hub = options.events if reads_hub else 0
        fill(conn_str, options.partitions, in_hub, equal_events(b"x" * options.body))
        for _ in range(options.rounds):
            for name, run in candidates(spark, conn_str, options).items():
                if options.only is None or name in options.only:
                    found.setdefault(name, []).append(run())
        spark.stop()
    print_rows(report(found), options.format)


if __name__ == "__main__":
    main()

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
- *receiver*: the library's receivers in one plain process, as a processor's pumps read: the limit
  of everything that reads the hub;
- *hub -> ...*: our source, into ``noop``, into the sink with a handler that takes columns or
  events, into ``CheckpointingSink`` in ``foreachBatch`` (which is ``mapInArrow``), and into a
  writer of rows that does nothing with them.

Sinks get the five columns that a sink needs. Rows per second and CPU time are of the batches
after the first one, which pays for starting Python processes. CPU time is that of Java and
all its Python processes, without the emulator's; ``rows_per_s`` shares the cores with the emulator.
"""

import argparse
import asyncio
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from azure.eventhub import EventData, EventHubProducerClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

import spark_integration
from benchmarks import _spark_handlers
from benchmarks._rows import options as options_of_all
from benchmarks._rows import print_rows
from benchmarks._spark_time import ProcessorTime
from eventproc.emulator import EventHubsEmulator
from eventproc.models import EventPosition
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource

HUB: Final = "bench"
PUBLISHED: Final = "published"
KEYS: Final = 100
SENT_AT_ONCE: Final = 2000

NEEDED: Final = (
    "body binary, partition string, offset string, sequenceNumber bigint, enqueuedTime timestamp"
)
"""The columns that a sink needs."""

Figures = tuple[float, float]
"""Rows per second, and processor microseconds for each row."""

WriteTo = Callable[[DataStreamWriter, Path], DataStreamWriter]
"""Sets the output of a query; its second argument is a folder that it may use."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One line of the report: medians over the rounds."""

    candidate: str
    rows_per_s: int
    cpu_us_per_row: float
    of_rate: float
    """Its rows per second, as a part of those of *rate -> noop*."""

    times_made: float
    """Its CPU time, as a multiple of that of *made -> noop* in the same round."""


# --- the emulator, in a process of its own --------------------------------------------------------


def serve(partition_count: int) -> None:
    """Run the emulator until standard input ends."""
    with EventHubsEmulator({HUB: partition_count, PUBLISHED: partition_count}) as emulator:
        print(emulator.connection_string_for(HUB), flush=True)
        sys.stdin.read()


@contextmanager
def full_hub(partition_count: int, event_count: int, body_size: int) -> Iterator[str]:
    """Start an emulator, fill its hub evenly; yield its connection string."""
    command = [sys.executable, __file__, "--role", "emulator", "--partitions", str(partition_count)]
    emulator = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert emulator.stdout is not None
    conn_str = emulator.stdout.readline().strip()
    try:
        with EventHubProducerClient.from_connection_string(conn_str) as producer:
            for number in range(partition_count):
                left = event_count // partition_count
                while left:
                    batch = producer.create_batch(partition_id=str(number))
                    for _ in range(min(left, SENT_AT_ONCE)):
                        batch.add(EventData(b"x" * body_size))
                    producer.send_batch(batch)
                    left -= len(batch)
        yield conn_str
    finally:
        emulator.kill()
        emulator.wait()


# --- the limit ------------------------------------------------------------------------------------


def receive(conn_str: str, partition_count: int, event_count: int) -> None:
    """Read everything with plain receivers; print seconds and processor seconds."""

    async def read() -> tuple[float, float]:
        async def drain(source: EventHubSource, partition_id: str) -> None:
            receiver = await source.open_receiver(
                "$Default", partition_id, EventPosition.earliest()
            )
            left = event_count // partition_count
            while left:
                left -= len(
                    await receiver.receive(events_max=min(left, 256), wait_max=timedelta(seconds=5))
                )
            await receiver.close()

        options = EventHubOptions(is_exclusive=False)
        async with EventHubSource.from_connection_string(conn_str, options=options) as source:
            begun, cpu = time.monotonic(), time.process_time()
            await asyncio.gather(*(drain(source, str(number)) for number in range(partition_count)))
            return time.monotonic() - begun, time.process_time() - cpu

    print(json.dumps(asyncio.run(read())), flush=True)


def run_receiver(conn_str: str, options: argparse.Namespace) -> Figures:
    """Return rows per second and processor microseconds for each row, of a new process."""
    command = [sys.executable, __file__, "--role", "receiver", "--conn-str", conn_str]
    command += ["--partitions", str(options.partitions), "--events", str(options.events)]
    seconds, cpu_s = json.loads(subprocess.check_output(command, text=True))
    return options.events / seconds, 1e6 * cpu_s / options.events


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
    seconds = sum(entry.batchDuration for entry in done) / 1e3
    return rows / seconds, 1e6 * cpu_s / rows


# --- outputs --------------------------------------------------------------------------------------


def to_noop(writer: DataStreamWriter, _: Path) -> DataStreamWriter:
    return writer.format("noop")


def to_nothing(writer: DataStreamWriter, _: Path) -> DataStreamWriter:
    return writer.format("bound")


def to_rows(writer: DataStreamWriter, _: Path) -> DataStreamWriter:
    return writer.format("bound").option("rows", "true")


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


def to_each_batch(writer: DataStreamWriter, folder: Path) -> DataStreamWriter:
    sink = spark_integration.CheckpointingSink(
        "benchmarks._spark_handlers:Columns", **group(folder)
    )
    return writer.foreachBatch(sink)


def candidates(
    spark: SparkSession, conn_str: str, options: argparse.Namespace
) -> dict[str, Callable[[], Figures]]:
    """Return the candidates by name."""
    batches = options.events // options.batch

    def hub(schema: str | None) -> DataFrame:
        stream = spark.readStream.format("eventproc").options(
            connectionString=conn_str,
            startingPosition="earliest",
            maxEventsPerTrigger=str(options.batch),
            maxTasks="2",
        )
        return (stream.schema(schema) if schema else stream).load()

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
        "receiver": lambda: run_receiver(conn_str, options),
        "hub, all columns -> noop": lambda: run_query(hub(None), to_noop),
        "hub -> noop": lambda: run_query(hub(NEEDED), to_noop),
        "hub -> sink, columns": lambda: run_query(hub(NEEDED), columns),
        "hub -> sink, events": lambda: run_query(hub(NEEDED), events),
        "hub -> foreachBatch, columns": lambda: run_query(hub(NEEDED), to_each_batch),
        "hub -> rows": lambda: run_query(hub(NEEDED), to_rows),
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
    parser.add_argument("--role", choices=("emulator", "receiver"), help=argparse.SUPPRESS)
    parser.add_argument("--conn-str", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def report(found: Mapping[str, Sequence[Figures]]) -> list[Result]:
    """Return the medians."""
    rows_by_name = {
        n: statistics.median(rows for rows, _ in figures) for n, figures in found.items()
    }
    rate = rows_by_name.get("rate -> noop", math.nan)
    made = [cpu for _, cpu in found.get("made -> noop", ())]
    return [
        Result(
            candidate=name,
            rows_per_s=round(rows_by_name[name]),
            cpu_us_per_row=round(statistics.median(cpu for _, cpu in figures), 2),
            of_rate=round(rows_by_name[name] / rate, 3),
            times_made=round(
                statistics.median(
                    cpu / bound for (_, cpu), bound in zip(figures, made, strict=True)
                )
                if made
                else math.nan,
                2,
            ),
        )
        for name, figures in found.items()
    ]


def main() -> None:
    options = arguments()
    if options.role == "emulator":
        serve(options.partitions)
        return
    if options.role == "receiver":
        receive(options.conn_str, options.partitions, options.events)
        return
    reads_hub = any(name.startswith(("hub", "receiver")) for name in options.only or ["hub"])
    in_hub = options.events if reads_hub else 0
    spark = session()
    found: dict[str, list[Figures]] = {}
    with full_hub(options.partitions, in_hub, options.body) as conn_str:
        for _ in range(options.rounds):
            for name, run in candidates(spark, conn_str, options).items():
                if options.only is None or name in options.only:
                    found.setdefault(name, []).append(run())
    spark.stop()
    print_rows([asdict(result) for result in report(found)], options.format)


if __name__ == "__main__":
    main()

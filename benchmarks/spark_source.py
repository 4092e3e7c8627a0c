"""How fast Spark reads a hub: the source beside a plain receiver, on the emulator, in one run.

    python benchmarks/spark_source.py                       # a table
    python benchmarks/spark_source.py --format json         # for programs
    python benchmarks/spark_source.py --events 40000 --rounds 1

Everybody reads the same backlog, from its first event to its last, round after round:

- *receiver*: the library's receivers in one plain process, as a processor's pumps read: the floor;
- *noop, all columns*; *noop, body and number*: a streaming query with ``availableNow`` into Spark's
  ``noop`` sink, in batches of ``--batch`` events;
- *rate*: as many rows of Spark's own JVM source into ``noop``: what Spark costs by itself.

Rows per second and processor time are of the batches after the first one, which pays for starting
Python processes. Processor time is that of Java and all its Python processes; the last column is
its ratio to the receiver's.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from azure.eventhub import EventData, EventHubProducerClient
from pyspark.sql import DataFrame, SparkSession

import spark_integration
from eventproc.emulator import EventHubsEmulator
from eventproc.models import EventPosition
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource

HUB: Final = "bench"
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Result:
    """One line of the report: medians over the rounds."""

    candidate: str
    rows_per_s: int
    cpu_us_per_row: float
    cpu_ratio: float


# --- the emulator, in a process of its own --------------------------------------------------------


def serve(partition_count: int) -> None:
    """Be the emulator until standard input ends."""
    with EventHubsEmulator({HUB: partition_count}) as emulator:
        print(emulator.connection_string_for(HUB), flush=True)
        sys.stdin.read()


@contextmanager
def full_hub(partition_count: int, event_count: int, body_size: int) -> Iterator[str]:
    """Start an emulator, fill its hub evenly; give its connection string."""
    command = [sys.executable, __file__, "--role", "emulator", "--partitions", str(partition_count)]
    emulator = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert emulator.stdout is not None
    conn_str = emulator.stdout.readline().strip()
    try:
        with EventHubProducerClient.from_connection_string(conn_str) as producer:
            for number in range(partition_count):
                for begin in range(0, event_count // partition_count, 500):
                    batch = producer.create_batch(partition_id=str(number))
                    for _ in range(min(500, event_count // partition_count - begin)):
                        batch.add(EventData(b"x" * body_size))
                    producer.send_batch(batch)
        yield conn_str
    finally:
        emulator.kill()
        emulator.wait()


# --- the floor ------------------------------------------------------------------------------------


def receive(conn_str: str, partition_count: int, event_count: int) -> None:
    """Read everything by plain receivers; print seconds and processor seconds."""

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


def run_receiver(conn_str: str, options: argparse.Namespace) -> tuple[float, float]:
    """Rows per second and processor microseconds for each row, of a fresh process."""
    command = [sys.executable, __file__, "--role", "receiver", "--conn-str", conn_str]
    command += ["--partitions", str(options.partitions), "--events", str(options.events)]
    seconds, cpu_s = json.loads(subprocess.check_output(command, text=True))
    return options.events / seconds, 1e6 * cpu_s / options.events


# --- Spark ----------------------------------------------------------------------------------------


def cpu_of_spark() -> float:
    """Processor seconds of Java and of all processes below it; of dead ones, once waited for."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended just now
        pid = int(entry.parent.name)
        parents[pid] = int(fields[1])
        seconds[pid] = sum(map(int, fields[11:15])) / TICKS_PER_S
    mine = {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= found
    return sum(seconds[pid] for pid in mine if pid != os.getpid() and pid in seconds)


def run_query(frame: DataFrame, batches: int | None = None) -> tuple[float, float]:
    """Rows per second and processor microseconds for each row, of one query without its start.

    Args:
        frame: what to read, as fast as possible.
        batches: after so many the query is stopped; by default it ends by itself.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start() if batches is None else writer.start()
        while not query.recentProgress:
            time.sleep(0.01)
        cpu_s, noted = cpu_of_spark(), len(query.recentProgress)
        while query.isActive and (batches is None or len(query.recentProgress) < batches):
            time.sleep(0.01)
        done = query.recentProgress[noted:]
        cpu_s = cpu_of_spark() - cpu_s
        query.stop()
    rows = sum(entry.numInputRows for entry in done)
    seconds = sum(entry.batchDuration for entry in done) / 1e3
    return rows / seconds, 1e6 * cpu_s / rows


def candidates(
    spark: SparkSession, conn_str: str, options: argparse.Namespace
) -> dict[str, Callable[[], tuple[float, float]]]:
    """Everybody who reads, by name."""

    def source(schema: str | None) -> DataFrame:
        stream = spark.readStream.format("eventproc").options(
            connectionString=conn_str,
            startingPosition="earliest",
            maxEventsPerTrigger=str(options.batch),
            maxTasks="2",
        )
        return (stream.schema(schema) if schema else stream).load()

    def rate() -> DataFrame:
        return (
            spark.readStream.format("rate-micro-batch")
            .options(rowsPerBatch=str(options.batch), numPartitions="2")
            .load()
        )

    slim = "body binary, sequenceNumber bigint"
    return {
        "receiver": lambda: run_receiver(conn_str, options),
        "noop, all columns": lambda: run_query(source(None)),
        "noop, body and number": lambda: run_query(source(slim)),
        "rate": lambda: run_query(rate(), options.events // options.batch),
    }


def session() -> SparkSession:
    """A small local Spark."""
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
    return spark


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--events", type=int, default=200_000, help="in the backlog")
    parser.add_argument("--batch", type=int, default=40_000, help="events in a micro-batch")
    parser.add_argument("--body", type=int, default=100, help="bytes in an event")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--role", choices=("emulator", "receiver"), help=argparse.SUPPRESS)
    parser.add_argument("--conn-str", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "emulator":
        serve(options.partitions)
        return
    if options.role == "receiver":
        receive(options.conn_str, options.partitions, options.events)
        return
    spark = session()
    found: dict[str, list[tuple[float, float]]] = {}
    with full_hub(options.partitions, options.events, options.body) as conn_str:
        for _ in range(options.rounds):
            for name, run in candidates(spark, conn_str, options).items():
                found.setdefault(name, []).append(run())
    spark.stop()
    floor = statistics.median(cpu for _, cpu in found["receiver"])
    results = [
        Result(
            candidate=name,
            rows_per_s=round(statistics.median(rows for rows, _ in rounds)),
            cpu_us_per_row=round(statistics.median(cpu for _, cpu in rounds), 1),
            cpu_ratio=round(statistics.median(cpu for _, cpu in rounds) / floor, 2),
        )
        for name, rounds in found.items()
    ]
    if options.format == "json":
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    print(" | ".join(Result.__dataclass_fields__))
    for result in results:
        print(" | ".join(str(value) for value in asdict(result).values()))


if __name__ == "__main__":
    main()

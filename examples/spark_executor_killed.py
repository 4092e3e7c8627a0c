"""Two Spark queries read an event hub, an executor is killed, and every order counts once.

    make demo-spark

Spark runs here with two executor processes. One query adds up the orders of each customer by
Spark's own aggregate. The other gives them to a handler, whose state is stored with the position.
While handlers are at work, one executor is killed (SIGKILL), so Spark runs its tasks again. At the
end both results are compared with what was published. It needs psutil, which a clone's tests bring.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyspark
from azure.eventhub import EventData, EventHubProducerClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import BlockingPartitionHandler, PartitionContext, ReceivedEvent
from eventproc.emulator import EventHubsEmulator
from eventproc.models import ConsumerGroup
from eventproc.sources.eventhubs import EventHubSource
from spark_integration import CheckpointingSink

PARTITIONS = 4
CUSTOMERS = 50
ORDERS_EACH = 240
ORDERS = CUSTOMERS * ORDERS_EACH
BATCH = 2000
"""Orders in a micro-batch of Spark."""

KILL_AT = 2 * BATCH + BATCH // 4
"""After so many deliveries an executor is killed, in the third batch."""

ORDERS_PER_SECOND = 500
"""What a handler does with the orders of one partition."""

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""In a run this short, optimizing takes longer than it saves."""


class Totals(BlockingPartitionHandler):
    """Adds up the orders of each customer; stored with the position, so each order counts once."""

    def process_events(self, context: PartitionContext, events: Sequence[ReceivedEvent]) -> None:
        """Handle the next orders of one partition."""
        # Not part of the result: it shows how many orders were delivered, again or not.
        with Path(os.environ["DEMO_FOLDER"], "deliveries").open("ab", buffering=0) as file:
            file.write(b"." * len(events))
        totals = Counter(json.loads(context.state or "{}"))
        for event in events:
            totals[str(event.partition_key)] += int(event.body)
        time.sleep(len(events) / ORDERS_PER_SECOND)
        context.state = json.dumps(totals).encode()


def publish(hub: str) -> Counter[str]:
    """Publish the orders with Azure's client; return the total of each customer."""
    totals: Counter[str] = Counter()
    with EventHubProducerClient.from_connection_string(hub) as producer:
        for customer in (f"customer-{number}" for number in range(CUSTOMERS)):
            amounts = [number % 97 + 1 for number in range(ORDERS_EACH)]
            orders = [EventData(str(amount)) for amount in amounts]
            producer.send_batch(orders, partition_key=customer)
            totals[customer] = sum(amounts)
    return totals


@contextmanager
def spark_session(folder: Path) -> Iterator[SparkSession]:
    """Start Spark with two executors, each a process."""
    os.environ |= {
        "DEMO_FOLDER": str(folder),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("orders")
    for name, value in {
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
        "spark.executor.memory": "1024m",
        "spark.local.dir": str(folder),
        "spark.log.level": "OFF",  # It reports a killed executor at length.
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    home = Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent))
    output = home / "work" / spark.sparkContext.applicationId
    try:
        yield spark
    finally:
        spark.stop()
        shutil.rmtree(output, ignore_errors=True)  # Spark leaves the output of its executors.


def executors() -> list[int]:
    """Return the process ids of the executors of this program."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # It has ended.
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline():
                found.append(process.pid)
    return found


def deliveries(folder: Path) -> int:
    """Return how many orders handlers have got."""
    path = folder / "deliveries"
    return path.stat().st_size if path.exists() else 0


async def stored_totals(hub: str, folder: Path) -> Counter[str]:
    """Read the handlers' states from the checkpoints."""
    source = EventHubSource.from_connection_string(hub)
    group = ConsumerGroup(
        fully_qualified_namespace=source.fully_qualified_namespace,
        eventhub_name=source.eventhub_name,
    )
    totals: Counter[str] = Counter()
    async with SqliteCheckpointStore(folder / "group.db") as store:
        for checkpoint in await store.list_checkpoints(group):
            found = await store.read_checkpoint(group, checkpoint.partition_id)
            totals.update(json.loads(found.state or "{}") if found else {})
    return totals


def run(spark: SparkSession, hub: str, folder: Path) -> dict[str, int]:
    """Run both queries, and kill an executor; return the totals of the aggregate."""
    names = {"connectionString": hub, "checkpointStore": f"sqlite:{folder / 'group.db'}"}
    aggregate: dict[str, int] = {}
    sink = CheckpointingSink(Totals, **names)

    def handle(batch: DataFrame, batch_id: int) -> None:
        sink(batch, batch_id)
        print(f"batch {batch_id}: {sink.last_batch.handled_count:,} orders handled", flush=True)

    def take_in(batch: DataFrame, _: int) -> None:
        aggregate.update({row["partitionKey"]: row["total"] for row in batch.collect()})

    orders = (
        spark.readStream.format("eventproc")
        .option("connectionString", hub)
        .option("startingPosition", "earliest")
        .option("maxEventsPerTrigger", BATCH)
        .option("maxTasks", 2)
        .load()
    )
    amount = sql.col("body").cast("string").cast("int")
    totals = orders.groupBy("partitionKey").agg(sql.sum(amount).alias("total"))
    writers = {
        "handler": orders.writeStream.foreachBatch(handle),
        "aggregate": totals.writeStream.outputMode("update").foreachBatch(take_in),
    }
    queries = [
        writer.option("checkpointLocation", str(folder / name)).trigger(availableNow=True).start()
        for name, writer in writers.items()
    ]
    while deliveries(folder) < KILL_AT and all(query.isActive for query in queries):
        time.sleep(0.02)
    before = executors()
    psutil.Process(before[0]).kill()
    print(f"executor {before[0]} of {before} is killed (SIGKILL)", flush=True)
    for query in queries:
        query.awaitTermination()
    print(f"the executors are now {executors()}")
    return aggregate


def main() -> int:
    """Publish, run, and compare; return the exit code."""
    with (
        tempfile.TemporaryDirectory(prefix="spark-", ignore_cleanup_errors=True) as name,
        EventHubsEmulator({"orders": PARTITIONS}) as emulator,
    ):
        folder, hub = Path(name), emulator.connection_string_for("orders")
        published = publish(hub)
        print(f"{ORDERS:,} orders of {CUSTOMERS} customers are published; Spark starts")
        with spark_session(folder) as spark:
            aggregate = run(spark, hub, folder)
        stored = asyncio.run(stored_totals(hub, folder))
        again = deliveries(folder) - ORDERS
    print(f"{again:,} orders were delivered a second time, because their executor had been killed")
    for name, totals in (("of the aggregate", aggregate), ("in the handlers' state", stored)):
        verdict = "equal to what was published" if totals == published else "WRONG"
        print(f"totals {name}: {verdict}")
    return 0 if aggregate == stored == published else 1


if __name__ == "__main__":
    sys.exit(main())

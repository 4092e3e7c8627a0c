"""Handle orders on Spark's executors; run it again, and only new ones are handled.

In one terminal: ``eventproc emulator --hub orders:8``. In another, with the variable that it
prints: ``python examples/spark_sink.py``, and publish in between with any client.
``eventproc checkpoints list`` shows the progress, as for a group of processors.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from spark_integration import CheckpointingSink

OFFSETS = Path("spark-sink").absolute()
"""Where Spark stores the offsets that it has read."""

NAMES = {
    "connectionString": "env:EVENTPROC_CONNECTION_STRING",
    "eventHubName": "orders",
    "checkpointStore": f"sqlite:{Path('spark-sink.db').absolute()}",
}


class Orders(PartitionHandler):
    """Counts orders; the count is stored with the position, so each counts once."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle the next orders of one partition."""
        context.state = b"%d" % (int(context.state or 0) + len(events))


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").appName("orders").getOrCreate()
    sink = CheckpointingSink(Orders, **NAMES)

    def handle(batch: DataFrame, batch_id: int) -> None:
        sink(batch, batch_id)
        print(f"batch {batch_id}: {sink.last_batch.handled_count} orders handled")

    orders = spark.readStream.format("eventproc").options(**NAMES, startingPositions="checkpoints")
    writer = orders.load().writeStream.foreachBatch(handle)
    writer = writer.option("checkpointLocation", str(OFFSETS)).trigger(availableNow=True)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()

"""Count orders by customer in Spark, from an event hub; run it again, and only new ones count.

In one terminal: ``eventproc emulator --hub orders:8``. In another, with the variable that it
prints: ``python examples/spark_source.py``, and publish in between with any client.
"""

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

OFFSETS = Path("spark-orders").absolute()
"""Where Spark stores the offsets that it has read."""


def show(orders: DataFrame, batch_id: int) -> None:
    """A placeholder for your work on a batch."""
    print(f"batch {batch_id}: {orders.count()} orders")
    orders.groupBy("partitionKey").count().orderBy("partitionKey").show()


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").appName("orders").getOrCreate()
    orders = (
        spark.readStream.format("eventproc")
        .option("connectionString", "env:EVENTPROC_CONNECTION_STRING")
        .option("eventHubName", "orders")
        .option("startingPosition", "earliest")
        .load()
    )
    (
        orders.writeStream.foreachBatch(show)
        .option("checkpointLocation", str(OFFSETS))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


if __name__ == "__main__":
    main()

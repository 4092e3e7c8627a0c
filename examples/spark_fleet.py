"""Count orders by customer with processors on Spark's executors, until Ctrl+C.

In one terminal: ``eventproc emulator --hub orders:8``. In another, with the variable that it
prints: ``python examples/spark_fleet.py``, and publish with any client. Stop it and start it again:
only new orders count.
"""

import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from spark_integration import Secret, SourceRecipe, StoreRecipe, run_on_executors

GROUP = Path("spark-fleet.db").absolute()
"""SQLite works on one machine; on a cluster, use ``blob:CONTAINER``."""


class Orders(PartitionHandler):
    """A placeholder for your handler; its output is in the executors' logs."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order."""
        counts = Counter(event.partition_key for event in events)
        print(f"partition {context.partition_id}: {dict(counts)}", file=sys.stderr)


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").appName("orders").getOrCreate()
    with (
        run_on_executors(
            spark,
            processors=2,
            source=SourceRecipe(
                connection=Secret("env:EVENTPROC_CONNECTION_STRING"), eventhub_name="orders"
            ),
            store=StoreRecipe(spec=f"sqlite:{GROUP}"),
            handler=Orders,
            name="orders",
            progress_interval=timedelta(seconds=1),
            on_progress=print,
        ) as fleet,
        suppress(KeyboardInterrupt),
    ):
        fleet.wait()
    print(f"{fleet.statistics().handled_count} orders handled")


if __name__ == "__main__":
    main()

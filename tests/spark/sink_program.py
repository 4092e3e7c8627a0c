"""A user's program: it passes all events of a hub to a handler, and ends.

Its arguments are the options of the source and of the sink, as JSON, the checkpoint location, and
optionally a file: then it goes on with new events until the file exists.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main() -> None:
    """Run the query until all events are handled."""
    source, sink, location = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
    spark = SparkSession.builder.getOrCreate()
    rows = spark.readStream.format("eventproc").options(**source).load()
    writer = rows.writeStream.format("eventproc").options(**sink)
    writer = writer.option("checkpointLocation", location)
    if len(sys.argv) == 4:
        writer.trigger(availableNow=True).start().awaitTermination()
        return
    query = writer.start()
    while not Path(sys.argv[4]).exists():
        query.awaitTermination(1)
    query.processAllAvailable()
    query.stop()


if __name__ == "__main__":
    main()

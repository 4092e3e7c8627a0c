"""A user's program on Spark Connect: it reads a hub, publishes to it, and hands it to a handler.

Its arguments are the options of the source and of the sink, as JSON, and a folder. It prints what
it found, as JSON.
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import spark_integration
from eventproc.errors import ConfigurationError
from spark_integration import Secret, SourceRecipe, StoreRecipe, run_on_executors


def main() -> None:
    """Do all of it."""
    source, sink, folder = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
    spark: Any = SparkSession.builder.getOrCreate()
    spark_integration.register(spark)

    hub = {"connectionString": source["connectionString"]}
    new = spark.createDataFrame([(b"1000", "2")], "body binary, partition string")
    new.write.format("eventproc").options(publish="eventhub", **hub).mode("append").save()
    rows = spark.read.format("eventproc").options(**hub).load()

    handed = spark.readStream.format("eventproc").options(**source).load().writeStream
    query = handed.format("eventproc").options(**sink)
    query = query.option("checkpointLocation", f"{folder}/handled").trigger(availableNow=True)
    query = query.start()
    query.awaitTermination()

    group = {"fullyQualifiedNamespace": "127.0.0.1", "eventHubName": "orders"}
    group |= {"checkpointStore": f"sqlite:{folder}/other.db"}
    found = {
        "session": type(spark).__module__,
        "rows": sorted([row["partition"], int(row["body"])] for row in rows.collect()),
        "lag": json.loads(query.recentProgress[-1]["sources"][0]["latestOffset"])["lag"],
        "foreachBatch": refusal(
            lambda: spark_integration.CheckpointingSink(sink["handler"], **group)
        ),
        "fleet": refusal(
            lambda: run_on_executors(
                spark,
                processors=1,
                source=SourceRecipe(connection=Secret(hub["connectionString"])),
                store=StoreRecipe(spec=f"sqlite:{folder}/other.db"),
                handler=sink["handler"],
            )
        ),
    }
    print("FOUND", json.dumps(found))


def refusal(call: Any) -> str:
    """Return the message of the error that a call raises."""
    try:
        call()
    except ConfigurationError as error:
        return str(error)
    return "accepted"


if __name__ == "__main__":
    main()

"""The publishing sink in a real Spark: what is read back is what was written."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from eventproc.emulator import EventHubsEmulator

PARTITIONS = 3
KEYS = ["anna", "bob", None]
VALUES: dict[Any, Any] = {
    "text": "7",
    "number": 2**40,
    "small": 7,
    "fraction": 1.0,
    "flag": True,
    "bytes": b"\xff\x00",
    "none": None,
}


@pytest.fixture(name="hubs")
def _hubs() -> Iterator[EventHubsEmulator]:
    """Yield an emulator with the hubs ``in`` and ``out``."""
    with EventHubsEmulator({"in": PARTITIONS, "out": PARTITIONS}) as emulator:
        yield emulator


def fill(hubs: EventHubsEmulator) -> None:
    """Publish to ``in``, with Azure's own producer, 60 events of two keys and without a key."""
    with EventHubProducerClient.from_connection_string(
        hubs.connection_string_for("in")
    ) as producer:
        for key in KEYS:
            batch = producer.create_batch(partition_key=key)
            for number in range(20):
                event = EventData(b"%d" % number)
                long = {"TYPE": "LONG", "VALUE": 2**40}  # the client's int has 32 bits
                event.properties = {**VALUES, "number": long, "number of event": number}
                batch.add(event)
            producer.send_batch(batch)


def read(spark: SparkSession, hubs: EventHubsEmulator, hub: str) -> list[Row]:
    connection = hubs.connection_string_for(hub)
    frame = spark.read.format("eventproc").option("connectionString", connection).load()
    return sorted(frame.collect(), key=lambda row: (row["partition"], row["sequenceNumber"]))


def events_by_key(rows: list[Row]) -> dict[str | None, list[Any]]:
    """Return body and properties of each event, by key, in order."""
    found: dict[str | None, list[Any]] = {}
    for row in rows:
        event = bytes(row["body"]), dict(sorted(row["properties"].items()))
        found.setdefault(row["partitionKey"], []).append(event)
    return found


def test_a_stream_publishes_what_it_read(spark, hubs, tmp_path):
    """Bodies, keys and properties are the same, value by value, and each key is in order."""
    fill(hubs)
    rows = spark.readStream.format("eventproc").options(
        connectionString=hubs.connection_string_for("in"), startingPosition="earliest"
    )
    query = (
        rows.load()
        .select("body", "partitionKey", "properties")
        .writeStream.format("eventproc")
        .options(publish="eventhub", connectionString=hubs.connection_string_for("out"))
        .option("checkpointLocation", str(tmp_path / "offsets"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    published, received = read(spark, hubs, "in"), read(spark, hubs, "out")
    _, properties = events_by_key(received)["anna"][0]

    assert events_by_key(received) == events_by_key(published)
    assert {key: len(events) for key, events in events_by_key(received).items()} == dict.fromkeys(
        KEYS, 20
    )
    assert {name: json.loads(properties[name]) for name in VALUES} == {
        **VALUES,
        "bytes": {"base64": "/wA="},
    }
    assert properties["fraction"] == "1.0"


def made(spark: SparkSession, count: int) -> DataFrame:
    """Return rows with a text body and a partition, in two tasks, and a property of text."""
    return spark.range(count, numPartitions=2).selectExpr(
        "string(id) body",
        "string(id % 2) partition",
        "map('city', 'Berlin', 'code', '7') properties",
    )


def save(frame: DataFrame, mode: str = "append", **options: str) -> None:
    frame.write.format("eventproc").options(**options).mode(mode).save()


def test_a_batch_is_published_to_the_partitions_that_it_names(spark, hubs):
    """With ``propertyValues=text`` all properties are text, whatever they look like."""
    save(
        made(spark, 30),
        publish="eventhub",
        connectionString=hubs.connection_string_for("out"),
        propertyValues="text",
    )
    received = read(spark, hubs, "out")

    assert Counter((row["partition"], bytes(row["body"]).decode()) for row in received) == Counter(
        (str(number % 2), str(number)) for number in range(30)
    )
    assert {tuple(sorted(row["properties"].items())) for row in received} == {
        (("city", '"Berlin"'), ("code", '"7"'))
    }


def test_a_task_whose_worker_is_killed_is_retried_and_loses_nothing(spark, hubs, shared_folder):
    """What it had published already is there twice, and every partition has its order."""
    for path in shared_folder.iterdir():
        path.unlink()
    (shared_folder / "hub").write_text(hubs.connection_string_for("out"))
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "5")
    try:
        save(
            made(spark, 20).coalesce(1).drop("properties"),
            publish="publish_recipes:killed_once",
        )
    finally:
        spark.conf.set(name, before)
    numbers = [int(row["body"]) for row in read(spark, hubs, "out") if row["partition"] == "0"]

    assert (shared_folder / "killed").exists()
    assert numbers == [0, 2, 4, *range(0, 20, 2)]


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({"mode": "overwrite"}, {}, "events cannot be overwritten"),
        ({"column": "offset"}, {}, "column 'offset' cannot be published.*drop it"),
        ({}, {"publish": "topic"}, "publish is 'topic': give eventhub, kafka"),
        ({}, {"publish": None}, "give the option publish"),
        ({}, {}, "row 1 of Spark's partition 0 cannot be published.*'city' is 'Berlin', which"),
    ],
)
def test_what_cannot_be_published_is_refused(spark, hubs, change, options, words):
    """The error that Spark shows says why, and names the row if it is one."""
    frame = made(spark, 2).coalesce(1)
    if column := change.get("column"):
        frame = frame.withColumn(column, frame["body"])
    given = {
        "publish": "eventhub",
        "connectionString": hubs.connection_string_for("out"),
        **options,
    }
    given = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(PySparkException, match=words):
        save(frame, mode=change.get("mode", "append"), **given)

    assert read(spark, hubs, "out") == []


def test_no_secret_is_shown_by_a_query_that_publishes(spark, hubs, spark_logs):
    """Neither plan, offset log, event log nor log has the key."""
    key = "cHVibGlzaGluZy1zZWNyZXQ"
    given = hubs.connection_string_for("out").replace("=SAS_KEY_VALUE", f"={key}")
    save(made(spark, 2).drop("properties"), publish="eventhub", connectionString=given)
    with pytest.raises(PySparkException, match="topic has no effect") as refused:
        save(made(spark, 2), publish="eventhub", connectionString=given, topic="orders")
    files = [path for path in spark_logs.directory.rglob("*") if path.is_file()]

    assert key in given
    assert files
    assert key not in str(refused.value)
    assert [path.name for path in files if key.encode() in path.read_bytes()] == []

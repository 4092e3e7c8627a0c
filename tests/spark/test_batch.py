"""``spark.read``: reading ranges of a hub as a batch, with every column."""

import json
from datetime import UTC, datetime

import pytest
from azure.eventhub import EventData
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

import spark_integration
from eventproc.emulator import EventHubsEmulator
from tests.spark.conftest import COUNT, HUB, expected, places, publish_events


def read(spark: SparkSession, emulator: EventHubsEmulator, **options: str):
    connection = emulator.connection_string_for(HUB)
    return spark.read.format("eventproc").options(connectionString=connection, **options)


def test_a_batch_has_each_event_once_with_all_columns(spark, emulator):
    """All events of the hub are read, in the columns of the Scala connector."""
    rows = read(spark, emulator).load().collect()
    stored = emulator.events(HUB, "1")[-1]
    (row,) = [r for r in rows if (r["partition"], r["sequenceNumber"]) == ("1", COUNT - 1)]

    assert places(rows) == expected("0", 0, COUNT) + expected("1", 0, COUNT)
    assert row == Row(
        body=bytearray(b"%d" % (COUNT - 1)),
        partition="1",
        offset=str(stored.offset),
        sequenceNumber=COUNT - 1,
        enqueuedTime=datetime.fromtimestamp(stored.enqueued_ms / 1000),  # noqa: DTZ006 - as PySpark does
        publisher=None,
        partitionKey=None,
        properties={},
        systemProperties={},
    )


def test_properties_keep_their_types_as_json(spark, emulator):
    """Property values are JSON: numbers stay numbers, and bytes are Base64 in an object."""
    event = EventData(b"x")
    event.properties = {"text": "ä", "number": 7, "flag": True, "bytes": b"\xff\x00"}
    event.content_type = "application/json"
    publish_events(emulator, None, event, partition_key="customer-4")
    (row,) = read(spark, emulator).load().where("partitionKey = 'customer-4'").collect()

    assert {name: json.loads(value) for name, value in row["properties"].items()} == {
        "text": "ä",
        "number": 7,
        "flag": True,
        "bytes": {"base64": "/wA="},
    }
    assert row["properties"]["text"] == '"ä"'
    assert row["systemProperties"] == {"content-type": '"application/json"'}


def test_enqueued_times_do_not_depend_on_the_sessions_time_zone(spark, emulator):
    """The instant is that of the hub; the session's zone changes only how it is shown."""
    first = emulator.events(HUB, "0")[0].enqueued_ms
    frame = read(spark, emulator).schema("enqueuedTime timestamp").load()
    shown = frame.selectExpr(
        "min(unix_millis(enqueuedTime)) t", "min(enqueuedTime) || '' s"
    ).first()

    assert shown["t"] == first
    assert shown["s"].startswith(
        datetime.fromtimestamp(first / 1000 + 5.5 * 3600, UTC).strftime("%Y-%m-%d %H:%M")
    )


def test_ranges_of_sequence_numbers_are_read_by_the_requested_tasks(spark, emulator):
    """An end is exclusive; ``maxTasks`` and ``maxEventsPerTask`` change the number of tasks
    only."""
    options = {
        "startingPositions": json.dumps({"0": 10, "1": {"seqNo": 19, "isInclusive": False}}),
        "endingPositions": json.dumps({"0": 110, "1": 40}),
    }
    alone = read(spark, emulator, **options).load()
    shared = read(spark, emulator, **options, maxTasks="1").load()
    cut = read(spark, emulator, **options, maxEventsPerTask="60").load()
    frames = [alone, shared, cut]

    assert [frame.rdd.getNumPartitions() for frame in frames] == [2, 1, 3]
    assert [places(frame.collect()) for frame in frames] == [
        expected("0", 10, 110) + expected("1", 20, 40)
    ] * 3


def test_ranges_of_time_that_meet_have_no_gap_and_no_overlap(spark, emulator):
    """The range before an instant and the one from it on have each event once; an end may be in the
    future.
    """
    noon = datetime.fromtimestamp(emulator.events(HUB, "1")[0].enqueued_ms / 1000, UTC).isoformat()
    before = read(spark, emulator, endingPosition=noon).load().collect()
    behind = read(
        spark, emulator, startingPosition=noon, endingPosition="2999-01-01T00:00:00Z"
    ).load()
    after = behind.collect()

    assert places(before) == expected("0", 0, COUNT)
    assert places(after) == expected("1", 0, COUNT)


@pytest.mark.parametrize(
    ("options", "schema", "words"),
    [
        (
            {"startingPositions": '{"0": 150}', "endingPositions": '{"0": 50}'},
            None,
            "before event 50",
        ),
        ({"startingPosition": "500"}, None, "has no event 499"),
        ({"startingPositions": '{"9": "earliest"}'}, None, "partition 9, which the hub"),
        ({"consumerGroup": "audit"}, None, "consumer group 'audit'"),
        ({"maxTask": "3"}, None, "did you mean maxTasks"),
        ({"maxEventsPerTrigger": "5"}, None, "maxEventsPerTrigger has no effect on a batch"),
        ({}, "body string", "is of type binary"),
        ({}, "bodies binary", "no column 'bodies'"),
    ],
)
def test_invalid_options_and_schemas_are_refused(spark, emulator, options, schema, words):
    """Planning raises ``ConfigurationError``, whose message Spark shows."""
    reader = read(spark, emulator, **options)
    reader = reader.schema(schema) if schema else reader
    with pytest.raises(PySparkException, match=words) as refused:
        reader.load().collect()

    assert "ConfigurationError" in str(refused.value)


def test_load_refuses_invalid_options_of_a_stream(spark, emulator):
    """``load`` raises, before a query is started."""
    reader = spark.readStream.format("eventproc").option("maxEventsPerTrigger", "many")
    reader = reader.option("connectionString", emulator.connection_string_for(HUB))
    with pytest.raises(PySparkException, match="maxEventsPerTrigger is 'many'"):
        reader.load()


def test_the_format_can_be_registered_in_every_session(spark, emulator):
    """A second session registers it while the first one is active."""
    other = spark.newSession()
    spark_integration.register(other)
    rows = read(other, emulator).load()
    spark_integration.register(spark)

    assert rows.columns == read(spark, emulator).load().columns


def test_events_deleted_by_retention_are_an_error_or_skipped(spark, emulator):
    """Reading them fails, and with ``failOnDataLoss=false`` begins at the first event that is
    left."""
    emulator.expire_before(HUB, "0", 50)
    with pytest.raises(PySparkException, match="events 10 to 49 of partition '0'"):
        read(spark, emulator, startingPositions='{"0": 10}').load().collect()
    rows = read(spark, emulator, startingPositions='{"0": 10}', failOnDataLoss="false").load()

    assert places(rows.collect()) == expected("0", 50, COUNT) + expected("1", 0, COUNT)

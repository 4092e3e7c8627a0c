"""A query handles the first half, its positions are imported, and a processor handles the rest."""

import asyncio

import pytest
from pyspark.errors import StreamingQueryException

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc._command import main
from eventproc.sources.eventhubs import EventHubSource
from tests.integration.positions.consumers import ours_handles
from tests.integration.sources.kafka_topic import KafkaTopic
from tests.spark.conftest import COUNT, HUB, KAFKA_SOURCE, expected, places

pytestmark = pytest.mark.since("4.2")  # before, AvailableNow has one batch


def test_a_query_handles_the_first_half_and_a_processor_the_rest(
    stream, emulator, tmp_path, monkeypatch, capsys
):
    """The batch that failed was planned and not committed: the processor handles its events."""
    hub = emulator.connection_string_for(HUB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", hub)
    monkeypatch.setenv("EVENTPROC_STORE", "sqlite:group.db")
    reading = stream(startingPosition="earliest", maxEventsPerTrigger="200")
    reading.fails_in = {1}
    with pytest.raises(StreamingQueryException):
        reading.run()
    code = main(["checkpoints", "import", "--from", "spark:checkpoint", "--yes"])
    source = EventHubSource.from_connection_string(hub)
    rest = asyncio.run(
        ours_handles(source, SqliteCheckpointStore("group.db"), COUNT - 1, ["0", "1"])
    )

    assert code == 0
    assert "batch 1 was planned and not committed" in capsys.readouterr().err
    (first,) = reading.batches[0]
    assert sorted([*first, *rest]) == expected("0", 0, COUNT) + expected("1", 0, COUNT)


@pytest.mark.skipif(
    not KAFKA_SOURCE, reason="needs Spark's Kafka source: `make .tools/kafka_source/.done`"
)
def test_sparks_kafka_source_handles_the_first_half_and_a_processor_the_rest(
    spark, kafka, tmp_path, monkeypatch, capsys
):
    """It stores the next offset of each partition, and a processor goes on over Kafka."""
    topic = KafkaTopic(kafka, "positions-of-spark", 2)
    for partition in range(topic.partitions):
        topic.publish(partition, *[b"x"] * COUNT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", f"kafka://{kafka.bootstrap_servers}")
    monkeypatch.setenv("EVENTPROC_STORE", "sqlite:group.db")
    first = []

    def keep(batch, batch_id):
        if batch_id == 1:
            raise RuntimeError("the sink failed")
        rows = batch.selectExpr("string(partition) partition", "offset sequenceNumber")
        first.extend(places(rows.collect()))

    source = spark.readStream.format("kafka").option("subscribe", topic.name)
    source = source.option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    source = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", COUNT)
    query = source.load().writeStream.foreachBatch(keep)
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException):
        query.trigger(availableNow=True).start().awaitTermination()
    there = ("checkpoints", "import", "--from", "spark-kafka:checkpoint")
    code = main([*there, "--eventhub", topic.name, "--yes"])
    rest = asyncio.run(
        ours_handles(topic.source(), SqliteCheckpointStore("group.db"), COUNT - 1, ["0", "1"])
    )

    assert code == 0
    assert "batch 1 was planned and not committed" in capsys.readouterr().err
    assert len(first) == COUNT
    assert sorted([*first, *rest]) == expected("0", 0, COUNT) + expected("1", 0, COUNT)

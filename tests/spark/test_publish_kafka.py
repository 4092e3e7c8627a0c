"""The publishing sink on a real Kafka broker."""

import asyncio
from itertools import count

import pytest
from pyspark.errors import PySparkException

from tests.integration.sources.kafka_topic import KafkaTopic
from tests.integration.sources.received_events import received
from tests.servers.kafka_broker import KafkaBroker

pytestmark = pytest.mark.long

_numbers = count()


@pytest.fixture(name="topic")
def _topic(kafka: KafkaBroker) -> KafkaTopic:
    return KafkaTopic(kafka, f"totals-{next(_numbers)}")


def test_a_stream_is_published_to_a_topic(spark, emulator, topic, tmp_path):
    """Each row is there, in the partition that it names, in order, with key and headers."""
    rows = spark.readStream.format("eventproc").options(
        connectionString=emulator.connection_string_for("orders"), startingPosition="earliest"
    )
    rows.load().selectExpr(
        "body",
        "partition",
        "'of ' || partition partitionKey",
        "map('offset', offset) properties",
    ).writeStream.format("eventproc").options(
        **{
            "publish": "kafka",
            "topic": topic.name,
            "kafka.bootstrap.servers": topic.broker.bootstrap_servers,
            "checkpointLocation": str(tmp_path / "offsets"),
        }
    ).trigger(availableNow=True).start().awaitTermination()
    stored = [emulator.events("orders", str(partition)) for partition in range(2)]
    found = asyncio.run(received(topic.source(), [len(part) for part in stored]))

    assert [[event.properties["offset"] for event in part] for part in found] == [
        [str(event.offset) for event in part] for part in stored
    ]
    assert [{event.partition_key for event in part} for part in found] == [{"of 0"}, {"of 1"}]
    assert [event.body for event in found[0][:3]] == [b"0", b"1", b"2"]


def test_a_missing_topic_fails_the_write(spark, topic):
    """The error that Spark shows names it."""
    writer = spark.range(1).selectExpr("string(id) body").write.format("eventproc")
    writer = writer.options(**{"kafka.bootstrap.servers": topic.broker.bootstrap_servers})
    with pytest.raises(PySparkException, match=r"topic 'gone' at .* cannot be published to"):
        writer.options(publish="kafka", topic="gone").mode("append").save()

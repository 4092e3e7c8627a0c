"""A consumer group of Kafka handles the first half, and we the rest, over Kafka or over AMQP.

The event hub over its two protocols is the emulator, and a topic with the same events at the same
times.
"""

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc._command import main
from eventproc.emulator import EventHubsEmulator
from eventproc.sources.eventhubs import EventHubSource
from tests.integration.positions.consumers import kafka_handles, ours_handles, publish
from tests.integration.sources.kafka_topic import KafkaTopic

COUNT = 10
HALF = 4
PARTITIONS = ("0", "1")
EVERY_EVENT = sorted((p, number) for p in PARTITIONS for number in range(COUNT))


@pytest.fixture(name="tool")
def _tool(tmp_path, monkeypatch, capsys):
    """Return a function that imports from a Kafka group into a new store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_STORE", "sqlite:group.db")

    def run(*arguments, hub):
        monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", hub)
        code = main(["checkpoints", "import", "--yes", *arguments])
        return code, capsys.readouterr().err

    return run


def test_a_kafka_group_handles_the_first_half_and_we_the_rest(kafka, tool):
    """Its committed offset is the next event, not the last handled one."""
    topic = KafkaTopic(kafka, "positions", len(PARTITIONS))
    for partition in range(topic.partitions):
        topic.publish(partition, *[b"x"] * COUNT)
    first = kafka_handles(kafka.bootstrap_servers, "positions", "old", HALF, topic.partitions)
    code, err = tool(
        "--from", "kafka:old", "--eventhub", "positions", hub=f"kafka://{kafka.bootstrap_servers}"
    )
    rest = ours_handles(topic.source(), SqliteCheckpointStore("group.db"), COUNT - 1, PARTITIONS)

    assert code == 0, err
    assert sorted([*first, *asyncio.run(rest)]) == EVERY_EVENT


@pytest.fixture(name="orders")
def _orders() -> Iterator[EventHubsEmulator]:
    with EventHubsEmulator({"orders-over-amqp": len(PARTITIONS)}) as emulator:
        yield emulator


def copy(emulator: EventHubsEmulator, topic: KafkaTopic, *, shift: int = 0) -> None:
    """Publish the events of the emulator's hub to a topic, as the Kafka endpoint shows them."""
    for partition in range(topic.partitions):
        topic.publish(partition, *[b"of another time"] * shift)
        for event in emulator.events("orders-over-amqp", str(partition)):
            topic.publish(partition, event.body, timestamp=event.enqueued_ms)


def test_a_kafka_group_handles_the_first_half_and_we_the_rest_over_amqp(
    kafka, tool, orders, monkeypatch
):
    """One event of each partition is read over both protocols before a number is trusted."""
    hub = orders.connection_string_for("orders-over-amqp")
    asyncio.run(publish(hub, PARTITIONS, COUNT))
    topic = KafkaTopic(kafka, "positions-over-kafka", len(PARTITIONS))
    copy(orders, topic)
    monkeypatch.setenv("BROKER", f"kafka://{kafka.bootstrap_servers}")
    first = kafka_handles(kafka.bootstrap_servers, topic.name, "over-amqp", HALF, topic.partitions)
    place = f"kafka:over-amqp?connection=BROKER&eventhub={topic.name}"
    code, err = tool("--from", place, hub=hub)
    source = EventHubSource.from_connection_string(hub)
    rest = ours_handles(source, SqliteCheckpointStore("group.db"), COUNT - 1, PARTITIONS)

    assert code == 0, err
    assert sorted([*first, *asyncio.run(rest)]) == EVERY_EVENT


def test_numbers_that_differ_over_the_two_protocols_are_refused(kafka, tool, orders, monkeypatch):
    """The message shows both events, and the ways that are left."""
    hub = orders.connection_string_for("orders-over-amqp")
    asyncio.run(publish(hub, PARTITIONS, COUNT))
    topic = KafkaTopic(kafka, "positions-shifted", len(PARTITIONS))
    copy(orders, topic, shift=1)
    monkeypatch.setenv("BROKER", f"kafka://{kafka.bootstrap_servers}")
    kafka_handles(kafka.bootstrap_servers, topic.name, "shifted", HALF, topic.partitions)
    code, err = tool("--from", f"kafka:shifted?connection=BROKER&eventhub={topic.name}", hub=hub)

    assert code == 2
    assert "the numbers of the two protocols differ in this hub" in err


def test_a_kafka_group_with_members_refuses_the_import(kafka, tool):
    """The broker says that it has some; a group that has committed nothing has no position."""
    topic = KafkaTopic(kafka, "positions-watched", 1)
    topic.publish(0, b"x")
    servers = kafka.bootstrap_servers
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "watching", "log_level": 0})
    consumer.subscribe(["positions-watched"])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition("positions-watched", 0, 1)], asynchronous=False)
    refused = tool(
        "--from", "kafka:watching", "--eventhub", "positions-watched", hub=f"kafka://{servers}"
    )
    consumer.close()
    nothing = tool(
        "--from", "kafka:never", "--eventhub", "positions-watched", hub=f"kafka://{servers}"
    )

    assert refused[0] == 2
    assert "Kafka group 'watching' in topic 'positions-watched' has members" in refused[1]
    assert "stop its consumers" in refused[1]
    assert nothing[0] == 2
    assert "no position of this group was found there" in nothing[1]


def test_a_broker_that_does_not_answer_is_named(tool, orders, monkeypatch):
    """Exit code 3: a retry may help."""
    monkeypatch.setattr("eventproc._command.foreign.kafka._TIMEOUT_S", 0.5)
    monkeypatch.setenv("BROKER", "kafka://127.0.0.1:1")
    hub = orders.connection_string_for("orders-over-amqp")
    code, err = tool("--from", "kafka:over-amqp?connection=BROKER&eventhub=orders", hub=hub)

    assert code == 3
    assert "asking for Kafka group 'over-amqp'" in err

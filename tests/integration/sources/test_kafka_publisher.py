"""The publisher of Kafka on a real broker: acknowledgements, refusals, outages."""

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest

from eventproc import ConfigurationError
from eventproc.errors import EventRefusedError, SourceRejectedError, SourceUnavailableError
from eventproc.models import OutgoingEvent
from eventproc.sources.kafka import KafkaPublisher
from tests.integration.sources.kafka_topic import KafkaTopic
from tests.integration.sources.received_events import received

SOON = timedelta(seconds=10)
LONG = timedelta(seconds=60)


def numbered(count: int, **fields: str) -> list[OutgoingEvent]:
    return [OutgoingEvent(body=b"%d" % number, **fields) for number in range(count)]  # type: ignore[arg-type]


@pytest.fixture(name="publisher")
def _publisher(topic: KafkaTopic) -> KafkaPublisher:
    """Return a publisher to a topic."""
    return KafkaPublisher(topic.broker.bootstrap_servers, topic=topic.name)


async def test_messages_reach_their_partitions_in_order_with_key_and_headers(publisher, topic):
    """Text and bytes stay what they are, numbers and booleans become JSON, a list several
    headers."""
    async with publisher:
        await publisher.publish(numbered(50, partition_id="0"), patience=SOON)
        await publisher.publish(
            [
                OutgoingEvent(
                    body=b"b",
                    partition_id="1",
                    partition_key="anna",
                    properties={"t": "ä", "b": b"\xff", "n": 7, "f": True, "l": ["x", "y"]},
                ),
                OutgoingEvent(body=None, partition_id="1", partition_key="anna"),
            ],
            patience=SOON,
        )
    first, second = await received(topic.source(), [50, 2])

    assert [event.body for event in first] == [b"%d" % number for number in range(50)]
    assert {event.partition_key for event in second} == {"anna"}
    assert second[0].properties == {
        "t": "ä",
        "b": b"\xff",
        "n": "7",
        "f": "true",
        "l": ("x", "y"),
    }
    assert second[1].system_properties == {"kafka-tombstone": True}


async def test_messages_of_a_key_are_in_one_partition(publisher, topic):
    """In that which Kafka's own clients choose; the hashes are those in Kafka's tests."""
    hashes = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}
    keys = {key: (value & 0x7FFFFFFF) % 3 for key, value in hashes.items()}
    async with publisher:
        await publisher.publish(
            [event for key in keys for event in numbered(5, partition_key=key)], patience=SOON
        )
        counts = Counter(keys.values())
    found = await received(topic.source(), [5 * counts[partition] for partition in range(3)])

    assert {
        event.partition_key: partition for partition, part in enumerate(found) for event in part
    } == keys


async def test_a_partition_that_was_added_meanwhile_is_published_to(publisher, topic):
    """The client itself asks for new partitions every five minutes."""
    async with publisher:
        await publisher.publish(numbered(1, partition_id="0"), patience=SOON)
        await asyncio.to_thread(topic.grow)
        await publisher.publish(numbered(3, partition_id="3"), patience=SOON)
    *_, added = await received(topic.source(), [1, 0, 0, 3])

    assert [event.body for event in added] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            OutgoingEvent(body=b"x" * 1_000_001),
            "too large for topic.*have 1000001 bytes, and message.max.bytes of the client is 1000",
        ),
        (OutgoingEvent(body=b"", partition_id="99"), "_UNKNOWN_PARTITION.*'99'"),
        (OutgoingEvent(body=b"", partition_id="a"), "a topic's partitions are numbers"),
        (OutgoingEvent(body=b"", properties={"x": "\ud800"}), "surrogates"),
        (OutgoingEvent(body=b"", properties={"\ud800": "x"}), "surrogates"),
        (OutgoingEvent(body=b"", properties={"a\0b": "x"}), "has a NUL"),
    ],
)
async def test_an_event_that_no_topic_accepts_is_refused_by_its_index(publisher, event, words):
    """A retry could not help."""
    async with publisher:
        with pytest.raises(EventRefusedError, match=words) as refused:
            await publisher.publish([OutgoingEvent(body=b"good"), event], patience=SOON)

    assert refused.value.index == 1


async def test_an_event_that_the_broker_refuses_is_an_error_with_its_reason(kafka):
    """A compacted topic takes no event without a key. The broker may refuse the whole request."""
    topic = await asyncio.to_thread(
        KafkaTopic, kafka, "keyed-only", partitions=1, cleanup_policy="compact"
    )
    events = [OutgoingEvent(body=b"1", partition_key="a"), OutgoingEvent(body=b"2")]
    async with KafkaPublisher(kafka.bootstrap_servers, topic=topic.name) as publisher:
        with pytest.raises(EventRefusedError, match="INVALID_RECORD"):
            await publisher.publish(events[1:], patience=SOON)
        with pytest.raises((EventRefusedError, SourceRejectedError), match="INVALID_RECORD"):
            await publisher.publish(events, patience=SOON)


async def test_a_missing_topic_is_refused_when_the_publisher_is_opened(kafka):
    """A misspelt name creates no topic."""
    publisher = KafkaPublisher(kafka.bootstrap_servers, topic="gone")
    with pytest.raises(ConfigurationError, match=r"topic 'gone'.*Unknown topic"):
        await publisher.open()


async def test_a_broker_that_is_down_is_an_error_after_the_patience(kafka, topic, publisher):
    """The message has the client's last error; the publisher goes on when the broker is back."""
    async with publisher:
        await publisher.publish(numbered(3, partition_id="0"), patience=SOON)
        await asyncio.to_thread(kafka.stop)
        try:
            words = r"5 of 5 .* within 2 s; .*(_TRANSPORT|_ALL_BROKERS_DOWN)"
            with pytest.raises(SourceUnavailableError, match=words):
                await publisher.publish(numbered(5), patience=timedelta(seconds=2))
        finally:
            await asyncio.to_thread(kafka.start)
        await publisher.publish(numbered(3, partition_id="0"), patience=LONG)
    (found,) = await received(topic.source(), [6])

    assert [event.body for event in found] == 2 * [b"0", b"1", b"2"]


async def test_what_was_not_sent_in_time_is_not_sent_later(topic, publisher):
    """Whoever was told that messages were not stored publishes them again."""
    count, was_partly_stored = 20_000, False
    events = [OutgoingEvent(body=bytes(1000), partition_id="0")] * count
    async with publisher, topic.source() as source:
        before = -1
        for patience_s in (0.4, 0.1, 0.2, 0.8, 0.05, 1.6):
            with suppress(SourceUnavailableError):
                await publisher.publish(events, patience=timedelta(seconds=patience_s))
            await publisher.publish(numbered(1, partition_id="0"), patience=LONG)
            end = (await source.partition_properties("0")).last_enqueued_sequence_number
            stored, before = end - before - 1, end
            was_partly_stored |= 0 < stored < count

    assert was_partly_stored


async def test_a_publisher_must_be_opened(publisher):
    """The error says so."""
    with pytest.raises(RuntimeError, match="open"):
        await publisher.publish(numbered(1), patience=SOON)

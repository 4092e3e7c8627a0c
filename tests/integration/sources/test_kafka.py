"""Processors on a real Kafka broker: hand-overs, slow handlers, and outages."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from eventproc import (
    ConfigurationError,
    EventPosition,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.sources.kafka import KafkaEventSource, KafkaOptions
from tests.integration.sources.processors import KafkaFleet, is_balanced, numbered, until
from tests.servers.ports import free_port

SOON = timedelta(seconds=10)


@pytest.fixture(name="fleet")
def _fleet(topic):
    return KafkaFleet(topic)


async def test_hand_overs_repeat_no_event(fleet):
    """A second processor joins and the first one leaves: each event is handled once, in order."""
    for partition in range(3):
        await fleet.publish(partition, *numbered(0, 30))
    first, second = fleet.processor("a"), fleet.processor("b")
    async with second:
        async with first:
            await until(lambda: is_balanced(first, second))
            await fleet.until(90)
        for partition in range(3):
            await fleet.publish(partition, *numbered(30, 40))
        await fleet.until(120)

    assert Counter(fleet.handled) == {
        (str(partition), body): 1 for partition in range(3) for body in numbered(0, 40)
    }
    for partition in range(3):
        own = [body for p, body in fleet.handled if p == str(partition)]
        assert own == numbered(0, 40)


async def test_a_slow_consumer_limits_what_is_prefetched(topic):
    """Its partition is paused at ``prefetch`` events; another partition is not affected."""
    topic.publish(0, *numbered(0, 2_500))
    topic.publish(1, b"other")
    options = KafkaOptions(prefetch=500)
    async with topic.source(options=options) as source:
        slow = await source.open_receiver("g", "0", EventPosition.earliest())
        other = await source.open_receiver("g", "1", EventPosition.earliest())
        assert [e.body for e in await other.receive(events_max=9, wait_max=SOON)] == [b"other"]
        await until(lambda: slow._feed.is_full)
        await asyncio.sleep(0.3)
        waiting = slow._feed.count
        bodies: list[bytes] = []
        while len(bodies) < 2_500:
            events = await slow.receive(events_max=100, wait_max=SOON)
            assert events
            bodies += [event.body for event in events]

    assert 500 <= waiting < 500 + 1_000
    assert bodies == numbered(0, 2_500)


@pytest.mark.parametrize("milliseconds", [-10_000, -1, 0])
async def test_a_time_before_1970_is_before_every_event(topic, milliseconds):
    """Kafka itself takes such a number for the end, or for nothing that it knows."""
    topic.publish(0, b"first", b"second")
    at = EventPosition.from_enqueued_time(
        datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    )
    async with topic.source() as source:
        receiver = await source.open_receiver("g", "0", at)
        events = await receiver.receive(events_max=9, wait_max=SOON)

    assert events[0].body == b"first"


async def test_a_position_beyond_the_end_is_an_error_that_names_a_reset(topic):
    """The message says when a reset is right."""
    topic.publish(0, *numbered(0, 10))
    async with topic.source() as source:
        with pytest.raises(SourceRejectedError, match="ends at offset 10") as caught:
            await source.open_receiver("g", "0", EventPosition.from_sequence_number(10))

    assert "should be handled, use `eventproc checkpoints reset`" in str(caught.value)


async def test_a_partition_is_kept_during_an_outage_of_the_broker(fleet, kafka, caplog):
    """The broker is frozen, then killed and started again: no event is handled twice."""
    await fleet.publish(0, *numbered(0, 20))
    async with fleet.processor("a") as processor:
        await fleet.until(20)
        kafka.pause()
        await asyncio.sleep(0.3)
        kafka.resume()
        await fleet.publish(0, *numbered(20, 25))
        await fleet.until(25)
        await asyncio.to_thread(kafka.kill)
        try:
            await until(lambda: "receiver_failed" in [vars(r).get("event") for r in caplog.records])
        finally:
            await asyncio.to_thread(kafka.start)
        await fleet.publish(0, *numbered(25, 30))
        await fleet.until(30)
        owned = processor.statistics().owned

    assert "0" in owned
    assert [body for _, body in fleet.handled] == numbered(0, 30)


async def test_an_unreachable_broker_is_an_error_at_once():
    """A request does not wait for the whole connect time-out."""
    async with KafkaEventSource(f"127.0.0.1:{free_port()}", topic="t") as source:
        async with asyncio.timeout(5):
            with pytest.raises(SourceUnavailableError, match="down"):
                await source.partition_ids()


async def test_wrong_settings_are_errors_that_name_them(kafka, topic):
    """An unknown topic, an unknown host, and TLS on a port without it."""
    for source, words in (
        (KafkaEventSource(kafka.bootstrap_servers, topic="nosuch"), "nosuch"),
        (KafkaEventSource("nosuch.invalid:9092", topic="t"), "nosuch.invalid"),
        # Whether the broker closes the connection first, or answers in its own protocol.
        (
            topic.source(config={"security.protocol": "ssl"}),
            "connecting to a PLAINTEXT broker|SSL connection closed by peer",
        ),
    ):
        async with source:
            with pytest.raises((ConfigurationError, SourceUnavailableError), match=words):
                await source.check_consumer_group("g")


async def test_no_kafka_consumer_group_is_created(fleet):
    """The broker knows no member, and nothing is committed to it."""

    async def groups():
        found = await asyncio.to_thread(fleet.hub.admin.list_consumer_groups().result, 20)
        return {group.group_id for group in found.valid}

    before = await groups()
    await fleet.publish(0, b"x")
    async with fleet.processor("a"):
        await fleet.until(1)
        assert await groups() == before

"""Clients that hear nothing from a real Kafka broker any more, without an error."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from eventproc import EventPosition
from eventproc.errors import SourceUnavailableError
from eventproc.models import OutgoingEvent
from eventproc.sources.kafka import KafkaOptions, KafkaPublisher
from tests.integration.sources.kafka_topic import KafkaTopic
from tests.servers.kafka_broker import KafkaBroker
from tests.servers.lossy_proxy import LossyProxy
from tests.servers.ports import free_port

pytestmark = pytest.mark.long

SOON = timedelta(seconds=10)
PATIENCE = timedelta(seconds=1)


@asynccontextmanager
async def proxied_topic():
    """Yield a topic of a broker behind a proxy, and the proxy."""
    port = free_port()
    with KafkaBroker(advertised=f"127.0.0.1:{port}") as broker:
        server_port = int(broker.bootstrap_servers.rpartition(":")[2])
        async with LossyProxy(server_port, port) as proxy:
            yield await asyncio.to_thread(KafkaTopic, broker, "topic", 1), proxy


async def repeated(attempt):
    """Return what the attempt returns, as soon as the source is available."""
    while True:
        try:
            return await attempt()
        except SourceUnavailableError:
            await asyncio.sleep(0.1)


async def test_clients_that_hear_nothing_are_replaced():
    """Their connections stay open; the vendor's client would wait for a minute or, if it has
    forgotten all brokers, forever."""
    options = KafkaOptions(connect_timeout=PATIENCE)
    async with proxied_topic() as (topic, proxy), asyncio.timeout(30):
        publisher = KafkaPublisher(topic.broker.bootstrap_servers, topic=topic.name)
        async with topic.source(options=options) as source, publisher:
            await publisher.publish([OutgoingEvent(body=b"1")], patience=SOON)
            receiver = await source.open_receiver("g", "0", EventPosition.earliest())
            (first,) = await receiver.receive(events_max=9, wait_max=SOON)

            proxy.silence()
            with pytest.raises(SourceUnavailableError, match="1 of 1 messages"):
                await publisher.publish([OutgoingEvent(body=b"lost")], patience=PATIENCE)
            await publisher.publish([OutgoingEvent(body=b"2")], patience=SOON)
            await receiver.receive(events_max=9, wait_max=timedelta(seconds=0.1))
            with pytest.raises(SourceUnavailableError, match="heard nothing for 3 s"):
                await receiver.receive(events_max=9, wait_max=SOON)
            receiver = await repeated(
                lambda: source.open_receiver(
                    "g", "0", EventPosition.from_sequence_number(first.sequence_number)
                )
            )
            events = await receiver.receive(events_max=9, wait_max=SOON)

    assert events[-1].body == b"2"


async def test_a_publish_that_was_cancelled_does_not_disturb_the_next_one():
    """Its thread goes on until its patience ends, and the next one waits for it."""
    async with proxied_topic() as (topic, proxy), asyncio.timeout(30):
        publisher = KafkaPublisher(topic.broker.bootstrap_servers, topic=topic.name)
        async with publisher:
            await publisher.publish([OutgoingEvent(body=b"1")], patience=SOON)
            proxy.silence()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await publisher.publish([OutgoingEvent(body=b"lost")], patience=2 * PATIENCE)
            await publisher.publish([OutgoingEvent(body=b"2")], patience=SOON)

        async with topic.source() as source:
            receiver = await source.open_receiver("g", "0", EventPosition.earliest())
            bodies = [e.body for e in await receiver.receive(events_max=9, wait_max=SOON)]

    assert (bodies[0], bodies[-1]) == (b"1", b"2")


async def test_a_client_whose_broker_answers_stays(topic):
    """No event for three times the patience is no reason to replace it."""
    async with topic.source(options=KafkaOptions(connect_timeout=PATIENCE)) as source:
        receiver = await source.open_receiver("g", "0", EventPosition.earliest())
        assert not await receiver.receive(events_max=1, wait_max=4 * PATIENCE)
        await asyncio.to_thread(topic.publish, 0, b"late")
        (event,) = await receiver.receive(events_max=1, wait_max=SOON)

    assert event.body == b"late"

"""Processors and receivers while a RabbitMQ broker is paused, stopped or killed."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest

from eventproc import EventPosition, SourceUnavailableError
from eventproc.sources.rabbitmq.streams import StreamOptions
from tests.integration.sources.processors import events_named, numbered, until
from tests.integration.sources.rabbitmq_queues import Queues
from tests.integration.sources.rabbitmq_streams import StreamFleet, SuperStream
from tests.servers import rabbitmq_broker
from tests.servers.rabbitmq_broker import RabbitMqBroker

EARLIEST = EventPosition.earliest()


@pytest.fixture(name="own_broker")
def _own_broker(has_rabbitmq, tmp_path):
    """Yield a broker for one test, which may stop it; its data survive."""
    with RabbitMqBroker(location=tmp_path) as broker:
        yield broker


@pytest.mark.long
async def test_partitions_are_kept_during_an_outage_of_the_broker(own_broker, caplog):
    """It is paused, stopped and killed: no event is lost, and none is handled twice."""
    hub = SuperStream(own_broker, "t", 3)
    await hub.create()
    fleet = StreamFleet(hub)
    options = StreamOptions(heartbeat=timedelta(seconds=1), connect_timeout=timedelta(seconds=2))
    source = hub.source(options=options)
    async with fleet.processor("a", source=source) as processor:
        for partition in range(3):
            await fleet.publish(partition, *numbered(0, 20))
        await fleet.until(60)
        own_broker.pause()
        await until(lambda: len(events_named(caplog, "receiver_failed")) == 3)
        own_broker.resume()
        # A broker that is killed within its first seconds forgets that it has streams at all.
        for number, end in enumerate((own_broker.stop, own_broker.kill), start=1):
            await asyncio.to_thread(end)
            await asyncio.to_thread(own_broker.start)
            await until_available(source)
            for partition in range(3):
                await fleet.publish(partition, *numbered(20 * number, 20 * number + 20))
            await fleet.until(60 + 60 * number)
        owned = processor.statistics().owned

    assert owned == ("0", "1", "2")
    assert Counter(fleet.handled) == {
        (str(partition), body): 1 for partition in range(3) for body in numbered(0, 60)
    }


async def until_available(source):
    """Wait until the streams are there after a start of the broker."""
    async with asyncio.timeout(20):
        while True:
            with suppress(SourceUnavailableError):
                await source.properties_of(["0", "1", "2"])
                return
            await asyncio.sleep(0.1)


@pytest.mark.long
async def test_a_silent_broker_fails_requests_and_receivers_in_bounded_time(own_broker):
    """A request within ``connect_timeout``, a receiver within two heartbeats."""
    hub = SuperStream(own_broker, "t", 1)
    await hub.create()
    options = StreamOptions(heartbeat=timedelta(seconds=1), connect_timeout=timedelta(seconds=1))
    async with hub.source(options=options) as source:
        receiver = await source.open_receiver("g", "0", EARLIEST)
        own_broker.pause()
        begun = time.monotonic()
        with pytest.raises(SourceUnavailableError, match="no answer within 1 s"):
            await source.partition_ids()
        asked_s = time.monotonic() - begun
        with pytest.raises(SourceUnavailableError, match="no sign of life"):
            await receiver.receive(events_max=1, wait_max=timedelta(seconds=30))
        silent_s = time.monotonic() - begun
        closing = time.monotonic()
    closed_s = time.monotonic() - closing
    own_broker.resume()

    assert asked_s < 10
    assert silent_s < 15
    assert closed_s < 10


@pytest.mark.long
async def test_a_broker_that_is_killed_ends_receivers_at_once(own_broker):
    """Heartbeats would show it after 40 s."""
    hub = SuperStream(own_broker, "t", 1)
    await hub.create()
    async with hub.source() as source:
        receiver = await source.open_receiver("g", "0", EARLIEST)
        begun = time.monotonic()
        own_broker.kill()
        with pytest.raises(SourceUnavailableError):
            await receiver.receive(events_max=1, wait_max=timedelta(seconds=30))

    assert time.monotonic() - begun < 10


@pytest.mark.long
async def test_a_connection_that_the_client_ends_cancels_no_request(own_broker):
    """The client ends a connection without heartbeats, and cancels what waits for an answer: here
    that is an answer that did not come, or an end.
    """
    queues = Queues(own_broker, 1)
    async with queues.source(heartbeat=timedelta(seconds=1)) as source:
        await source.check_consumer_group("g")
        receiver = await source.open_receiver("g", "0", EARLIEST)
        own_broker.pause()
        stopping = asyncio.create_task(receiver.stop())
        asking = asyncio.create_task(source.partition_properties("0"))
        done, _ = await asyncio.wait([stopping, asking], timeout=15)

    assert done == {stopping, asking}
    assert not stopping.cancelled()
    assert stopping.exception() is None
    assert not asking.cancelled()
    assert isinstance(asking.exception(), SourceUnavailableError)


@pytest.mark.long
async def test_the_acknowledgement_timeout_of_the_broker_is_named(
    has_rabbitmq, tmp_path, monkeypatch
):
    """Its setting is the broker's, and the remedy too."""
    config = rabbitmq_broker._CONFIG + "consumer_timeout = 1000\n"
    ticks = f"{rabbitmq_broker._ERLANG_ARGS} -rabbit channel_tick_interval 500"
    monkeypatch.setattr(rabbitmq_broker, "_CONFIG", config)
    monkeypatch.setattr(rabbitmq_broker, "_ERLANG_ARGS", ticks)
    with RabbitMqBroker(location=tmp_path) as broker:
        queues = Queues(broker, 1)
        async with queues.source() as source:
            await source.check_consumer_group("g")
            await queues.publish("0", b"x")
            receiver = await source.open_receiver("g", "0", EARLIEST)
            (event,) = await receiver.receive(events_max=1, wait_max=timedelta(seconds=30))
            with pytest.raises(SourceUnavailableError) as caught:
                await receiver.receive(events_max=1, wait_max=timedelta(seconds=120))

    assert event.body == b"x"
    assert "delivery acknowledgement" in str(caught.value)
    assert "Raise consumer_timeout" in str(caught.value)

"""Receivers while a RabbitMQ broker is paused, and when it closes their channel."""

import asyncio
from datetime import timedelta

import pytest

from eventproc import EventPosition, SourceUnavailableError
from tests.integration.sources.rabbitmq_queues import Queues
from tests.servers import rabbitmq_broker
from tests.servers.rabbitmq_broker import RabbitMqBroker

EARLIEST = EventPosition.earliest()


@pytest.mark.long
async def test_a_connection_that_the_client_ends_cancels_no_request(has_rabbitmq):
    """The client ends a connection without heartbeats, and cancels what waits for an answer: here
    that is an answer that did not come, or an end.
    """
    with RabbitMqBroker() as broker:
        queues = Queues(broker, 1)
        async with queues.source(heartbeat=timedelta(seconds=1)) as source:
            await source.check_consumer_group("g")
            receiver = await source.open_receiver("g", "0", EARLIEST)
            broker.pause()
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

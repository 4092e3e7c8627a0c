"""A source of partition queues: its arguments, and what is known before it is open."""

import asyncio
from datetime import timedelta

import pytest

from eventproc import ConfigurationError, EventPosition
from eventproc.models import OffsetFormat
from eventproc.sources.rabbitmq import (
    QueueOptions,
    QueuePublisher,
    RabbitDeadLetterSink,
    RabbitQueues,
)
from eventproc.sources.rabbitmq import _source as source_module
from eventproc.sources.rabbitmq._amqp import shown_address
from eventproc.testing import run_virtual

URL = "amqp://guest:secret@broker:5672/orders"


def test_the_names_of_its_records_have_no_password():
    """The broker with its virtual host is the namespace, the prefix is the hub."""
    source = RabbitQueues(URL, prefix="OrderEvents", count=12)

    assert source.fully_qualified_namespace == "orders@broker:5672"
    assert source.eventhub_name == "OrderEvents"
    assert source.offset_format is OffsetFormat.QUEUE
    assert "secret" not in repr(source)
    assert RabbitQueues("amqp://a:b@h:1/", prefix="q", count=1).fully_qualified_namespace == "h:1"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("amqp://broker", "broker"),
        ("amqps://u:p@broker:5671/", "broker:5671"),
        ("amqp://u:p@broker/a", "broker/a"),
    ],
)
def test_an_address_is_shown_without_the_login(url, shown):
    """In errors and names."""
    assert shown_address(url) == shown


@pytest.mark.parametrize("url", ["http://u:secret@x", "amqp://", "amqp://u:secret@x:port/", "x"])
@pytest.mark.parametrize(
    "make",
    [
        lambda url: RabbitQueues(url, prefix="q", count=1),
        lambda url: QueuePublisher(url, prefix="q", count=1),
        lambda url: RabbitDeadLetterSink(url, routing_key="q"),
    ],
)
def test_what_is_no_address_is_refused(make, url):
    """The message says how one looks, and does not repeat a password."""
    with pytest.raises(ConfigurationError, match="amqp://USER:PASSWORD@HOST") as caught:
        make(url)

    assert "secret" not in str(caught.value)


def test_a_sink_needs_an_exchange_or_a_queue():
    """Otherwise no queue could get its letters."""
    with pytest.raises(ConfigurationError, match="exchange="):
        RabbitDeadLetterSink(URL)


def test_as_many_messages_are_unsettled_as_are_sent_ahead():
    """The processor writes a checkpoint before that."""
    source = RabbitQueues(URL, prefix="q", count=1, options=QueueOptions(prefetch=40))

    assert source.unsettled_max == 40


async def test_a_closed_source_says_how_to_open_it():
    """Not with an error of the client."""
    source = RabbitQueues(URL, prefix="q", count=1)

    with pytest.raises(RuntimeError, match="async with"):
        await source.open_receiver("$Default", "0", EventPosition.earliest())


@pytest.mark.parametrize(
    ("options", "expiration_s", "heartbeat_s"),
    [
        (QueueOptions(), 60, 12),
        (QueueOptions(), 12, 2),
        (QueueOptions(), 1, 1),
        (QueueOptions(heartbeat=timedelta(seconds=7)), 60, 7),
        (QueueOptions(heartbeat=timedelta(seconds=7)), None, 7),
        (QueueOptions(), None, 10),
    ],
)
async def test_a_frozen_process_loses_its_queues_before_its_leases(
    options, expiration_s, heartbeat_s
):
    """The heartbeat is a fifth of the expiration, in whole seconds, and at least one."""
    source = RabbitQueues(URL, prefix="q", count=1, options=options)
    if expiration_s is not None:
        source.set_expiration(timedelta(seconds=expiration_s))
    async with source:
        assert source.heartbeat_s == heartbeat_s


class FakeConsumer:
    """Notes that it is closed."""

    is_closed = False

    async def stop(self, _: float) -> None:
        pass

    async def close(self, _: float) -> None:
        self.is_closed = True


class FakeBroker:
    """In each queue 40 messages wait, which it says after a second."""

    def __init__(self, *_: object, **__: object) -> None:
        self.consumers: list[FakeConsumer] = []

    async def consume(self, *_: object) -> FakeConsumer:
        self.consumers.append(FakeConsumer())
        return self.consumers[-1]

    async def depths(self, queues: list[str]) -> list[int]:
        await asyncio.sleep(1)
        return [40] * len(queues)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("opened", ["0", "1"])
def test_a_receiver_that_is_opened_while_depths_are_asked_for_is_measured_and_closed(
    monkeypatch, opened
):
    """As one of a partition that comes back: nobody would see that its events wait."""
    broker = FakeBroker()
    monkeypatch.setattr(source_module, "Broker", lambda *_, **__: broker)

    async def scenario():
        options = QueueOptions(depth_interval=timedelta(seconds=5))
        async with RabbitQueues(URL, prefix="q", count=2, options=options) as source:
            first = await source.open_receiver("$Default", "0", EventPosition.earliest())
            await asyncio.sleep(5.5)
            if opened == "0":
                await first.close()
            second = await source.open_receiver("$Default", opened, EventPosition.earliest())
            await asyncio.sleep(20)
            assert second.last_enqueued is not None
            return second.last_enqueued.sequence_number

    assert run_virtual(scenario()) == 39
    assert [consumer.is_closed for consumer in broker.consumers] == [True, True]

"""Messages of queues that AMQP's Python client cannot read: they must not stop a partition."""

from datetime import UTC, datetime, timedelta
from typing import Any

import aio_pika
import pytest

from eventproc.errors import EventRefusedError
from eventproc.models import OutgoingEvent
from eventproc.sources.rabbitmq import PartitionPublisher
from eventproc.sources.rabbitmq._event import UNREADABLE
from eventproc.testing._source_contract.bench import EARLIEST, GROUP, bodies, take
from tests.integration.sources.rabbitmq_queues import Queues
from tests.servers.rabbitmq_broker import RabbitMqBroker

KEY = {"x-partition-key": "a"}


class InMicroseconds(datetime):
    """A time that a publisher sends in microseconds, although AMQP has seconds."""

    def timestamp(self) -> float:
        return super().timestamp() * 1_000_000


class Latin(str):
    """A text that a publisher sends in ISO 8859-1, although AMQP has UTF-8."""

    __slots__ = ()

    def encode(self, encoding: str = "", errors: str = "") -> bytes:
        return super().encode("latin-1")


@pytest.mark.parametrize(
    ("properties", "missing"),
    [
        ({"timestamp": InMicroseconds(2026, 1, 1, tzinfo=UTC)}, "timestamp"),
        ({"content_type": Latin("\u00e9t\u00e9")}, "content_type"),
        ({"headers": {Latin("\u00e9t\u00e9"): "x"}}, r"header \xe9t\xe9"),
        ({"headers": {"at": InMicroseconds(2026, 1, 1, tzinfo=UTC)}}, "header at"),
    ],
    ids=["time", "text", "name of a header", "time in a header"],
)
async def test_what_cannot_be_read_is_left_out_of_the_event(
    rabbitmq: RabbitMqBroker, properties: dict[str, Any], missing: str
):
    """The client would end the connection, again on each delivery, and with it all partitions."""
    queues = Queues(rabbitmq)
    await queues.publish("0", b"before")
    properties = {"message_id": "7", **properties, "headers": KEY | properties.get("headers", {})}
    async with queues.channel() as channel:
        await channel.default_exchange.publish(
            aio_pika.Message(b"odd", **properties), queues.queue("0")
        )
    await queues.publish("0", b"after")
    async with queues.source() as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        events = await take(receiver, 3)
        await receiver.close()

    assert bodies(events) == [b"before", b"odd", b"after"]
    odd = events[1]
    assert odd.system_properties == {UNREADABLE: missing}
    assert (odd.partition_key, odd.message_id, odd.properties) == ("a", "7", {})
    assert odd.enqueued_time.year < 9999


async def test_a_routing_key_that_is_no_text_stops_nothing(rabbitmq: RabbitMqBroker):
    """It is in each delivery, and no event has it."""
    queues = Queues(rabbitmq)
    await queues.declare()
    async with queues.channel() as channel:
        fanout = await channel.declare_exchange(queues.prefix, aio_pika.ExchangeType.FANOUT)
        await (await channel.get_queue(queues.queue("0"))).bind(fanout)
        await fanout.publish(aio_pika.Message(b"odd"), Latin("\u00e9t\u00e9"))
    async with queues.source() as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        events = await take(receiver, 1)
        await receiver.close()

    assert bodies(events) == [b"odd"]


@pytest.mark.parametrize(
    "odd",
    [{"message_id": "x" * 300}, {"properties": {"n": 2**70}}, {"properties": {"x": float("nan")}}],
    ids=["long id", "large number", "not a number"],
)
async def test_an_event_that_the_protocol_cannot_have_is_refused(rabbitmq: RabbitMqBroker, odd):
    """By its place, so that a replay of dead letters goes on with the next one."""
    queues = Queues(rabbitmq, 1)
    await queues.declare()
    plain = OutgoingEvent(body=b"plain", partition_id="0")
    publisher = PartitionPublisher(rabbitmq.url, prefix=queues.prefix, count=1)
    patience = timedelta(seconds=5)
    async with publisher:
        with pytest.raises(EventRefusedError, match="AMQP 0-9-1") as refused:
            await publisher.publish(
                [plain, OutgoingEvent(body=b"odd", partition_id="0", **odd)], patience=patience
            )
        await publisher.publish([plain], patience=patience)

    assert refused.value.index == 1
    assert await queues.left() == 2

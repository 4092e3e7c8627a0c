"""The messages that a reader of dead letters holds."""

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aio_pika
import pytest

from eventproc.errors import SourceUnavailableError
from eventproc.sources.rabbitmq import RabbitDeadLetterSink
from eventproc.sources.rabbitmq._dead_letters import HeldMessages
from tests.scenarios.dead_letters import letter


class FakeChannel:
    """A channel to a queue of three messages, whose second one does not come."""

    is_closed = False

    def __init__(self) -> None:
        self.got = 0
        self.declaration_result = SimpleNamespace(message_count=3)

    async def declare_queue(self, *_: object, **__: object) -> "FakeChannel":
        return self

    async def get(self, **_: object) -> Any:
        self.got += 1
        if self.got == 2:
            raise SourceUnavailableError("no answer")
        return SimpleNamespace(headers={})

    async def close(self) -> None:
        self.is_closed = True


class FakeBroker:
    """A broker with one connection."""

    def __init__(self) -> None:
        self.channels: list[FakeChannel] = []

    @asynccontextmanager
    async def answered(self, _: str):
        yield

    async def connected(self) -> Any:
        return self

    async def channel(self, **_: object) -> FakeChannel:
        self.channels.append(FakeChannel())
        return self.channels[-1]


async def test_a_reading_that_failed_returns_its_messages_at_once():
    """Otherwise a second one would not get those of the first, and say nothing."""
    broker: Any = FakeBroker()
    with pytest.raises(SourceUnavailableError):
        await HeldMessages(broker, "letters", has_delivery_limit=False).take()

    assert [channel.is_closed for channel in broker.channels] == [True]


class FakeExchange:
    """A connection, its channel and its exchange, which encodes what is published."""

    is_closed = False

    def __init__(self) -> None:
        self.default_exchange = self
        self.published: list[aio_pika.Message] = []

    async def connect(self, *_: object, **__: object) -> "FakeExchange":
        return self

    async def channel(self, **_: object) -> "FakeExchange":
        return self

    async def publish(self, message: aio_pika.Message, *_: object, **__: object) -> None:
        message.properties.marshal()
        self.published.append(message)

    async def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("message_id", "sent"),
    [
        ("x" * 255, "x" * 255),
        ("x" * 256, None),
        ("\u00e9" * 127, "\u00e9" * 127),
        ("\u00e9" * 128, None),
        (None, None),
    ],
    ids=["255 bytes", "256 bytes", "254 bytes of 127 letters", "256 bytes of 128 letters", "none"],
)
async def test_a_letter_whose_event_has_any_id_is_stored(message_id, sent, monkeypatch):
    """AMQP 0-9-1 limits its bytes; an event whose letter is refused would stop its partition."""
    exchange = FakeExchange()
    monkeypatch.setattr(aio_pika, "connect", exchange.connect)
    sink = RabbitDeadLetterSink("amqp://broker/", routing_key="letters")
    await sink.store(letter(1, message_id=message_id))
    await sink.close()

    (message,) = exchange.published
    assert message.message_id == sent
    assert json.loads(message.body)["event"].get("message_id") == message_id

"""The messages that a reader of dead letters holds."""

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from eventproc.errors import SourceUnavailableError
from eventproc.sources.rabbitmq._dead_letters import HeldMessages


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

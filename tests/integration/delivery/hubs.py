"""The hub of a storm: Event Hubs in the emulator, or streams of a real RabbitMQ broker."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

import aio_pika
from azure.eventhub import EventHubProducerClient

from eventproc.emulator import EventHubsEmulator
from eventproc.errors import SourceError
from tests.integration.delivery.fleet import send
from tests.integration.sources.rabbitmq_streams import SuperStream
from tests.servers.rabbitmq_broker import RabbitMqBroker

PARTITIONS: Final = 8
NAME: Final = "hub"


class Hub(Protocol):
    """A hub whose events have consecutive numbers as bodies, from 0 in each partition."""

    env: Mapping[str, str]
    """How processes find it."""

    has_outages: bool
    is_away: bool
    """Whether an outage is under way."""

    def open(self) -> None:
        """Start it, with empty partitions."""

    def close(self) -> None:
        """Stop it."""

    def publish(self, numbers: Sequence[int]) -> None:
        """Publish these numbers to each partition; return when they are stored."""

    def restart(self, *, is_killed: bool) -> None:
        """Begin an outage, which ends by itself: the data survive."""


class EmulatorHub:
    """Event Hubs in the emulator, to which Azure's own client publishes."""

    has_outages = False
    is_away = False

    def __init__(self, folder: Path) -> None:
        """Start nothing yet."""
        self._parts = ExitStack()
        self.env: Mapping[str, str] = {}

    def open(self) -> None:
        """Start the emulator."""
        # Older than any checkpoint, also by a clock that is ten minutes behind: otherwise the hub
        # would count as created again.
        emulator = self._parts.enter_context(
            EventHubsEmulator({NAME: PARTITIONS}, hub_age=timedelta(hours=1))
        )
        address = emulator.connection_string_for(NAME)
        self.env = {"EVENTPROC_CONNECTION_STRING": address}
        self._producer = self._parts.enter_context(
            EventHubProducerClient.from_connection_string(address)
        )

    def close(self) -> None:
        """Stop it."""
        self._parts.close()

    def publish(self, numbers: Sequence[int]) -> None:
        """Send a batch to each partition."""
        bodies = {number: str(number) for number in numbers}
        for partition in range(PARTITIONS):
            send(self._producer, numbers, str(partition), bodies)

    def restart(self, *, is_killed: bool) -> None:
        """Refuse: the emulator forgets its events."""
        raise NotImplementedError


class StreamHub:
    """A super stream of a RabbitMQ broker, which is killed or stopped, and started again."""

    has_outages = True
    is_away = False

    def __init__(self, folder: Path) -> None:
        """Start nothing yet."""
        location = folder / "rabbitmq"
        location.mkdir()
        self._hub = SuperStream(RabbitMqBroker(location=location), NAME, PARTITIONS)
        self._starting: threading.Thread | None = None
        self.env: Mapping[str, str] = {}

    def open(self) -> None:
        """Start the broker twice: one that is killed soon after its first stream forgets it."""
        broker = self._hub.broker
        broker.start()
        asyncio.run(self._hub.create())
        broker.stop()
        self._start()
        self.env = {"EVENTPROC_CONNECTION_STRING": broker.stream_url, "EVENTPROC_EVENTHUB": NAME}

    def close(self) -> None:
        """Stop the broker."""
        if self._starting is not None:
            self._starting.join()
        self._hub.broker.stop()

    def publish(self, numbers: Sequence[int]) -> None:
        """Send each event and wait until the broker has confirmed it."""
        asyncio.run(self._publish(numbers))

    async def _publish(self, numbers: Sequence[int]) -> None:
        async with await aio_pika.connect(self._hub.broker.url) as connection:
            channel = await connection.channel()
            await asyncio.gather(
                *(self._publish_to(channel, number, numbers) for number in range(PARTITIONS))
            )

    async def _publish_to(
        self, channel: aio_pika.abc.AbstractChannel, partition: int, numbers: Sequence[int]
    ) -> None:
        for number in numbers:
            await channel.default_exchange.publish(
                aio_pika.Message(b"%d" % number), self._hub.stream(partition)
            )

    def restart(self, *, is_killed: bool) -> None:
        """End the broker, and start it in a thread."""
        self.is_away = True
        broker = self._hub.broker
        end: Callable[[], None] = broker.kill if is_killed else broker.stop

        def run() -> None:
            end()
            self._start()
            self.is_away = False

        self._starting = threading.Thread(target=run)
        self._starting.start()

    def _start(self) -> None:
        """Return when every stream has a leader again."""
        self._hub.broker.start()
        asyncio.run(self._until_available())

    async def _until_available(self) -> None:
        ids = [str(number) for number in range(PARTITIONS)]
        async with asyncio.timeout(60), self._hub.source() as source:
            while True:
                with suppress(SourceError):
                    await source.properties_of(ids)
                    return
                await asyncio.sleep(0.1)


HUBS: Final[dict[str, Callable[[Path], Hub]]] = {"eventhubs": EmulatorHub, "streams": StreamHub}

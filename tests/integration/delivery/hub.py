"""The hub of a storm: Event Hubs in the emulator, or a topic of a real Kafka broker."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import Final, Protocol

from azure.eventhub import EventHubProducerClient
from confluent_kafka import Producer

from eventproc.emulator import EventHubsEmulator
from tests.integration.delivery.fleet import send
from tests.integration.sources.kafka_topic import KafkaTopic
from tests.servers.kafka_broker import KafkaBroker

PARTITIONS: Final = 8
NAME: Final = "hub"


class Hub(Protocol):
    """A hub whose events have consecutive numbers as bodies, from 0 in each partition."""

    env: Mapping[str, str]
    """How processes find it."""

    has_outages: bool

    def open(self) -> None:
        """Start it, with empty partitions."""

    def close(self) -> None:
        """Stop it."""

    def publish(self, numbers: Sequence[int]) -> None:
        """Publish these numbers to each partition."""

    def begin_outage(self, *, is_silent: bool) -> None:
        """Begin an outage: silent (no answer), or with everything killed."""

    def end_outage(self) -> None:
        """End the outage."""


class EmulatorHub:
    """A hub to which Azure's own client publishes."""

    has_outages = False

    def __init__(self) -> None:
        """Start nothing yet."""
        self._parts = ExitStack()
        self.env: Mapping[str, str] = {}
        """How processes find it."""

    def open(self) -> None:
        """Start it, with empty partitions."""
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
        """Publish these numbers to each partition, as one batch."""
        bodies = {number: str(number) for number in numbers}
        for partition in range(PARTITIONS):
            send(self._producer, numbers, str(partition), bodies)

    def begin_outage(self, *, is_silent: bool) -> None:
        """Do nothing: it has none."""

    def end_outage(self) -> None:
        """Do nothing."""


class KafkaHub:
    """A topic of a real broker, which is frozen or killed during an outage."""

    has_outages = True

    def __init__(self) -> None:
        """Start nothing yet."""
        self._broker = KafkaBroker()
        self.env: Mapping[str, str] = {}

    def open(self) -> None:
        """Start the broker, and create the topic."""
        self._broker.start()
        self.env = {
            "EVENTPROC_CONNECTION_STRING": f"kafka://{self._broker.bootstrap_servers}",
            "EVENTPROC_EVENTHUB": NAME,
        }
        topic = KafkaTopic(self._broker, NAME, PARTITIONS)
        # It repeats what a broker that was killed did not acknowledge, and the broker drops what it
        # has already.
        self._producer = Producer(topic.client | {"enable.idempotence": True, "linger.ms": 20})

    def close(self) -> None:
        """Stop it."""
        self._broker.remove()

    def publish(self, numbers: Sequence[int]) -> None:
        """Queue these numbers for each partition; during an outage they wait for its end."""
        for partition in range(PARTITIONS):
            for number in numbers:
                self._producer.produce(NAME, str(number), partition=partition)
        self._producer.poll(0)

    def begin_outage(self, *, is_silent: bool) -> None:
        """Freeze or kill the broker, whose log has everything that it acknowledged."""
        if is_silent:
            self._broker.pause()
        else:
            self._broker.kill()

    def end_outage(self) -> None:
        """Let it continue, or start it again."""
        self._broker.resume()
        self._broker.start()


HUBS: Final[dict[str, Callable[[], Hub]]] = {"emulator": EmulatorHub, "kafka": KafkaHub}

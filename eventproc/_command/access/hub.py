"""How the hub is reached."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from eventproc._base.identity import DIRECT, Network
from eventproc.errors import ConfigurationError
from eventproc.ports import EventPublisher, EventSource

if TYPE_CHECKING:
    from eventproc.sources.eventhubs import EventHubOptions

HUB_VARIABLE: Final = "EVENTPROC_CONNECTION_STRING"
"""Environment variable: the connection string of the Event Hubs namespace or of one hub, or the
address of a Kafka broker."""

ENDPOINT_VARIABLE: Final = "EVENTPROC_CUSTOM_ENDPOINT"
"""Environment variable: the address to connect to instead of the namespace's own."""

T = TypeVar("T")


class TransportName(StrEnum):
    """How Event Hubs are reached, by its option."""

    AMQP = "amqp"
    WEBSOCKET = "websocket"
    KAFKA = "kafka"


@dataclass(frozen=True, kw_only=True)
class HubAccess:
    """How the hub is reached; not which one it is."""

    connection_string: str = field(default="", repr=False)
    namespace: str = ""
    """The Event Hubs namespace, which is reached with the identity of this process."""

    custom_endpoint: str = ""
    transport: TransportName = TransportName.AMQP
    network: Network = DIRECT

    def check(self) -> None:
        """Raise ``ConfigurationError`` if both a key and an identity are given."""
        if self.connection_string and self.namespace:
            raise ConfigurationError(
                "give --namespace, which uses an identity, or the connection string "
                f"({HUB_VARIABLE}), which has a key; not both"
            )

    def kafka_source(self, eventhub: str) -> EventSource:
        """Make a source that reads an event hub through its Kafka endpoint, with an identity.

        Raises:
            ConfigurationError: An option is missing, or has no effect over Kafka.
        """
        from eventproc.sources.kafka import KafkaEventSource  # noqa: PLC0415 - it is an extra

        return self._over_kafka(KafkaEventSource.with_identity, eventhub)

    def kafka_publisher(self, eventhub: str) -> EventPublisher:
        """Make a publisher to an event hub through its Kafka endpoint, with an identity.

        Raises:
            ConfigurationError: As for ``kafka_source``.
        """
        from eventproc.sources.kafka import KafkaPublisher  # noqa: PLC0415 - it is an extra

        return self._over_kafka(KafkaPublisher.with_identity, eventhub)

    def _over_kafka(self, make: Callable[..., T], eventhub: str) -> T:
        if not eventhub:
            raise ConfigurationError("which event hub? Give --eventhub")
        if self.network.proxy is not None:
            raise ConfigurationError(
                "--proxy is not possible with --transport kafka: give --transport websocket"
            )
        bundle = self.network.ca_bundle
        return make(
            self.namespace,
            eventhub,
            self.network.credential(),
            bootstrap_servers=self.custom_endpoint.removeprefix("sb://").rstrip("/") or None,
            config={"ssl.ca.location": bundle} if bundle else None,
        )

    def over_amqp(self) -> "HubAccess":
        """Return how the hub is reached without its Kafka endpoint: sinks of letters use AMQP."""
        if self.transport is TransportName.KAFKA:
            return replace(self, transport=TransportName.AMQP, custom_endpoint="")
        return self

    def options(self) -> "EventHubOptions":
        """Return how to connect to an event hub over AMQP."""
        from eventproc.sources.eventhubs import EventHubOptions, Transport  # noqa: PLC0415 - it is an extra

        return EventHubOptions(
            transport=Transport(self.transport.value),
            custom_endpoint=self.custom_endpoint or None,
            ca_bundle=self.network.ca_bundle,
            http_proxy=self.network.proxy,
        )

    def make(self, kind: Callable[..., T], eventhub: str | None) -> T:
        """Make an object of ``eventproc.sources.eventhubs`` that connects to the hub."""
        if self.namespace:
            if not eventhub:
                raise ConfigurationError("which event hub? Give --eventhub")
            credential = self.network.credential()
            return kind(self.namespace, eventhub, credential, options=self.options())
        if self.transport is TransportName.KAFKA:
            raise ConfigurationError(
                "--transport kafka needs --namespace; for a connection string put kafka+ before it"
            )
        made: T = kind.from_connection_string(  # type: ignore[attr-defined]
            self.connection_string, eventhub_name=eventhub, options=self.options()
        )
        return made

    def refuse_event_hubs_options(self) -> None:
        """Raise ``ConfigurationError`` if an option is given that only Event Hubs over AMQP has."""
        if self.custom_endpoint or self.transport is not TransportName.AMQP:
            name = "--custom-endpoint" if self.custom_endpoint else "--transport"
            raise ConfigurationError(
                f"{name} is only for Event Hubs over AMQP: remove it; settings of a Kafka or "
                "RabbitMQ broker follow a question mark in its address"
            )

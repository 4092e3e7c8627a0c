"""Make the source or the publisher that an address names: event hub, topic or partition queues."""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlencode

from eventproc._command.arguments.access import HUB_VARIABLE, KAFKA_ENDPOINT, HubAccess
from eventproc.errors import ConfigurationError
from eventproc.ports import EventPublisher, EventSource

if TYPE_CHECKING:
    from eventproc.sources.kafka._address import TopicAddress

KAFKA_SERVERS = "kafka://"
"""Prefix of the address of Kafka brokers; a question mark and settings of the client may follow."""

QUEUE_SCHEMES = ("amqp://", "amqps://")
"""Prefixes of the address of a RabbitMQ broker; ``queues=COUNT`` has to follow as a setting."""

OTHER_BROKERS = (KAFKA_SERVERS, KAFKA_ENDPOINT, *QUEUE_SCHEMES)
"""Prefixes of all that is not Event Hubs over AMQP."""

OWN_QUEUE_SETTINGS = ("queues", "prefetch")
"""Settings in the address of a RabbitMQ broker that are not the client's."""

ADDRESSES = (
    "or to kafka://HOST:PORT of a Kafka broker, or to amqp://USER:PASSWORD@HOST/?queues=COUNT of "
    "RabbitMQ's partition queues"
)


def make_source(access: HubAccess, eventhub: str) -> EventSource:
    """Make the source of an event hub or a topic, without connecting it.

    Raises:
        ConfigurationError: The connection string is missing or invalid.
    """
    access.check()
    connection_string = access.connection_string
    if not connection_string and not access.namespace:
        raise ConfigurationError(
            "which Event Hubs namespace? Give --namespace to use an identity, or set the "
            f"environment variable {HUB_VARIABLE} to its connection string (`eventproc emulator` "
            f"prints one), {ADDRESSES}"
        )
    if access.is_kafka_with_identity:
        from eventproc.sources.kafka import KafkaEventSource  # noqa: PLC0415 - it is an extra

        return access.over_kafka(KafkaEventSource.with_identity, eventhub)
    if connection_string.startswith(KAFKA_ENDPOINT) or not connection_string.startswith(
        OTHER_BROKERS
    ):
        _require_endpoint(connection_string.removeprefix(KAFKA_ENDPOINT))
    if not connection_string.startswith(OTHER_BROKERS):
        from eventproc.sources.eventhubs import EventHubSource  # noqa: PLC0415 - it is an extra

        return access.over_amqp(EventHubSource, eventhub or None)
    access.refuse_event_hubs_options()
    if connection_string.startswith((KAFKA_SERVERS, KAFKA_ENDPOINT)):
        return _kafka_source(connection_string, eventhub or None)
    return _queue_source(connection_string, eventhub or None)


def make_publisher(access: HubAccess, eventhub: str) -> EventPublisher:
    """Make the publisher to an event hub, a topic or queues, without connecting it.

    Raises:
        ConfigurationError: The connection string is invalid.
    """
    access.check()
    connection_string = access.connection_string
    if connection_string.startswith((KAFKA_SERVERS, KAFKA_ENDPOINT)):
        from eventproc.sources.kafka import KafkaPublisher  # noqa: PLC0415 - it is an extra

        servers, settings = _kafka_settings(connection_string, eventhub)
        return KafkaPublisher(servers, topic=eventhub, config=settings)
    if connection_string.startswith(QUEUE_SCHEMES):
        from eventproc.sources.rabbitmq import PartitionPublisher  # noqa: PLC0415 - it is an extra

        url, count, _ = _queue_address(connection_string)
        return PartitionPublisher(url, prefix=eventhub, count=count)
    if access.is_kafka_with_identity:
        from eventproc.sources.kafka import KafkaPublisher  # noqa: PLC0415 - it is an extra

        return access.over_kafka(KafkaPublisher.with_identity, eventhub)
    from eventproc.sources.eventhubs import EventHubPublisher  # noqa: PLC0415 - it is an extra

    return access.over_amqp(EventHubPublisher, eventhub)


def kafka_topic(access: HubAccess, eventhub: str) -> "TopicAddress":
    """Return the address of a topic, or of an event hub over its Kafka endpoint.

    Raises:
        ConfigurationError: The address is missing, or one of something else.
    """
    from eventproc.sources.kafka._address import address_in, address_of, address_with_identity  # noqa: PLC0415 - it is an extra

    access.check()
    connection_string = access.connection_string
    if access.namespace:
        return access.over_kafka(address_with_identity, eventhub)
    if connection_string.startswith(QUEUE_SCHEMES):
        raise ConfigurationError("RabbitMQ has no Kafka groups: give the address of Kafka brokers")
    if connection_string.startswith(KAFKA_SERVERS):
        servers, settings, namespace = _kafka_address(connection_string)
        return address_of(servers, eventhub, namespace, settings)
    return address_in(connection_string.removeprefix(KAFKA_ENDPOINT), eventhub or None, None)


def _require_endpoint(connection_string: str) -> None:
    """Refuse the address of a broker without its prefix, such as ``HOST:PORT``; it may be secret.

    Raises:
        ConfigurationError: The text does not begin with a name and a value.
    """
    if connection_string and "=" not in connection_string.partition(";")[0]:
        raise ConfigurationError(
            f"this is no connection string of Event Hubs: set {HUB_VARIABLE} to one, which begins "
            f"with Endpoint=sb://, {ADDRESSES}"
        )


def _kafka_source(connection_string: str, topic: str | None) -> EventSource:
    from eventproc.sources.kafka import KafkaEventSource  # noqa: PLC0415 - it is an extra

    if connection_string.startswith(KAFKA_ENDPOINT):
        return KafkaEventSource.from_connection_string(
            connection_string.removeprefix(KAFKA_ENDPOINT), topic=topic
        )
    if topic is None:
        raise ConfigurationError("which Kafka topic? Give its name as --eventhub")
    servers, settings, namespace = _kafka_address(connection_string)
    return KafkaEventSource(servers, topic=topic, namespace=namespace, config=settings)


def _kafka_address(connection_string: str) -> tuple[str, dict[str, str], str | None]:
    servers, _, query = connection_string.removeprefix(KAFKA_SERVERS).partition("?")
    settings = _settings(query, KAFKA_SERVERS)
    return servers, settings, settings.pop("namespace", None)


def _kafka_settings(connection_string: str, topic: str) -> tuple[str, Mapping[str, object]]:
    """Return the servers of a Kafka broker or endpoint, and the settings of a client.

    Raises:
        ConfigurationError: The address is invalid.
    """
    if connection_string.startswith(KAFKA_ENDPOINT):
        from eventproc.sources.kafka._address import address_in  # noqa: PLC0415 - it is an extra

        found = address_in(connection_string.removeprefix(KAFKA_ENDPOINT), topic, None)
        return found.bootstrap_servers, found.settings
    servers, settings, _ = _kafka_address(connection_string)
    return servers, settings


def _queue_source(address: str, prefix: str | None) -> EventSource:
    from eventproc.sources.rabbitmq import QueueOptions, RabbitQueues  # noqa: PLC0415 - it is an extra

    if prefix is None:
        raise ConfigurationError("which queues? Give the first part of their names as --eventhub")
    url, count, prefetch = _queue_address(address)
    options = QueueOptions() if prefetch is None else QueueOptions(prefetch=prefetch)
    return RabbitQueues(url, prefix=prefix, count=count, options=options)


def _queue_address(address: str) -> tuple[str, int, int | None]:
    """Return the URL of a RabbitMQ broker, how many queues there are, and the prefetch if given.

    Raises:
        ConfigurationError: The address does not say how many.
    """
    url, _, query = address.partition("?")
    settings = _settings(query, QUEUE_SCHEMES[0])
    count = _count(settings, "queues")
    prefetch = _count(settings, "prefetch") if "prefetch" in settings else None
    others = f"?{urlencode(settings)}" if settings else ""  # Of the client, such as ``cafile``.
    return url + others, count, prefetch


def broker_url(address: str) -> str:
    """Return the URL of a RabbitMQ broker, without our settings of partition queues.

    Raises:
        ConfigurationError: It is the address of something else.
    """
    if not address.startswith(QUEUE_SCHEMES):
        raise ConfigurationError(
            "a queue needs the address of its RabbitMQ broker: set the environment variable "
            f"{HUB_VARIABLE} to amqp://USER:PASSWORD@HOST, or give --connection-string"
        )
    url, _, query = address.partition("?")
    settings = _settings(query, QUEUE_SCHEMES[0])
    others = {name: value for name, value in settings.items() if name not in OWN_QUEUE_SETTINGS}
    return url + (f"?{urlencode(others)}" if others else "")


def _count(settings: dict[str, str], name: str) -> int:
    """Take a setting of ours out of those of the client."""
    text = settings.pop(name, None)
    if text is None or not text.isdecimal():
        raise ConfigurationError(
            f"the address of a RabbitMQ broker needs {name}=COUNT after the question mark"
            + ("" if text is None else f": {text!r} is no number")
        )
    return int(text)


def _settings(query: str, servers: str) -> dict[str, str]:
    """Parse settings as in a URL: ``%26`` stands for ``&``, but a plus is not a blank."""
    settings = {}
    for number, part in enumerate(filter(None, query.split("&")), start=1):
        name, equals, value = part.partition("=")
        if not equals:
            raise ConfigurationError(
                f"setting {number} after the question mark of {servers}... must have the form "
                "name=value"
            )
        settings[unquote(name)] = unquote(value)
    return settings

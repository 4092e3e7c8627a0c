"""From a connection string to the event hub or topic that it leads to."""

from urllib.parse import unquote

from eventproc.cli.extras import needing
from eventproc.errors import ConfigurationError
from eventproc.ports import EventSource

HUB_VARIABLE = "EVENTPROC_CONNECTION_STRING"
"""Environment variable: the connection string of the Event Hubs namespace, or of one hub; or where
a Kafka broker is."""

KAFKA_SERVERS = "kafka://"
"""Begins the address of Kafka brokers, with settings of the client behind a question mark."""

KAFKA_ENDPOINT = "kafka+"
"""Put before the connection string of Event Hubs: its Kafka endpoint in place of AMQP."""


def make_source(connection_string: str | None, eventhub: str | None) -> EventSource:
    """Make the source of an event hub or a topic; nothing is connected yet.

    Raises:
        ConfigurationError: No connection string was given, or it cannot work.
    """
    if not connection_string:
        raise ConfigurationError(
            "which Event Hubs namespace? Set the environment variable "
            f"{HUB_VARIABLE} to its connection string (`eventproc emulator` prints one), or to "
            "kafka://HOST:PORT of a Kafka broker"
        )
    if connection_string.startswith((KAFKA_SERVERS, KAFKA_ENDPOINT)):
        return _kafka_source(connection_string, eventhub or None)
    with needing("eventhubs"):
        from eventproc.sources.eventhubs import EventHubSource  # noqa: PLC0415 - it is an extra
    return EventHubSource.from_connection_string(connection_string, eventhub_name=eventhub or None)


def _kafka_source(connection_string: str, topic: str | None) -> EventSource:
    with needing("kafka"):
        from eventproc.sources.kafka import KafkaEventSource  # noqa: PLC0415 - it is an extra
    if connection_string.startswith(KAFKA_ENDPOINT):
        return KafkaEventSource.from_connection_string(
            connection_string.removeprefix(KAFKA_ENDPOINT), topic=topic
        )
    if topic is None:
        raise ConfigurationError("which Kafka topic? Give its name as --eventhub")
    servers, _, query = connection_string.removeprefix(KAFKA_SERVERS).partition("?")
    settings = _settings(query)
    namespace = settings.pop("namespace", None)
    return KafkaEventSource(servers, topic=topic, namespace=namespace, config=settings)


def _settings(query: str) -> dict[str, str]:
    """Settings as in a URL, where a value may have ``%26`` for ``&``; a plus is a plus."""
    settings = {}
    for number, part in enumerate(filter(None, query.split("&")), start=1):
        name, equals, value = part.partition("=")
        if not equals:
            raise ConfigurationError(
                f"setting {number} behind the question mark of {KAFKA_SERVERS}... is not of the "
                "form name=value"
            )
        settings[unquote(name)] = unquote(value)
    return settings

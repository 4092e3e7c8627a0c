"""Make a publisher for the hub that a connection string and a name give."""

from eventproc.cli.access.hub import HubAccess, TransportName
from eventproc.cli.arguments.sources import (
    KAFKA_ENDPOINT,
    KAFKA_SERVERS,
    QUEUE_SCHEMES,
    kafka_settings,
    queue_address,
)
from eventproc.ports import EventPublisher


def make_publisher(access: HubAccess, eventhub: str) -> EventPublisher:
    """Make the publisher, without connecting it.

    Raises:
        ConfigurationError: The connection string is invalid.
    """
    access.check()
    connection_string = access.connection_string
    if connection_string.startswith((KAFKA_SERVERS, KAFKA_ENDPOINT)):
        from eventproc.sources.kafka import KafkaPublisher  # noqa: PLC0415 - it is an extra

        servers, settings = kafka_settings(connection_string, eventhub)
        return KafkaPublisher(servers, topic=eventhub, config=settings)
    if connection_string.startswith(QUEUE_SCHEMES):
        from eventproc.sources.rabbitmq import (  # noqa: PLC0415 - it is an extra
            PartitionPublisher,
        )

        url, count, _ = queue_address(connection_string)
        return PartitionPublisher(url, prefix=eventhub, count=count)
    if access.namespace and access.transport is TransportName.KAFKA:
        return access.kafka_publisher(eventhub)
    from eventproc.sources.eventhubs import EventHubPublisher  # noqa: PLC0415 - it is an extra

    return access.make(EventHubPublisher, eventhub)

"""An event that is to be published."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PropertyValue = str | bytes | bool | int | float | None
"""A value that a property may have in every service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingEvent:
    """One event for an ``EventPublisher``. What a service does not accept, ``publish`` refuses."""

    body: bytes | None
    """``None`` is a Kafka message without value (a tombstone); an event hub has no such events."""

    partition_id: str | None = None
    """The partition to publish to; by default the service chooses one, by the key if there is
    one."""

    partition_key: str | None = None
    """Events of one key get into one partition."""

    properties: Mapping[str, PropertyValue | list[PropertyValue]] = field(default_factory=dict)
    """Kafka sends them as headers. A list stands for a header that occurs several times."""

    content_type: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None
    """These three are properties of AMQP; Kafka has no place for them."""

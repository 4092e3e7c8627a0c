"""Convert a message of a queue to a ``ReceivedEvent``."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from eventproc.models import REPLAYED_FROM, REPLAYED_FROM_PROPERTY
from eventproc.models._checkpoint import QUEUE_OFFSET_PREFIX
from eventproc.sources._lazy_event import LazyEvent, setter_of
from eventproc.sources.rabbitmq._amqp import Delivery
from eventproc.sources.rabbitmq._frames import UNREADABLE_HEADER

KEY_HEADER: Final = "x-partition-key"
"""Header: the key of a message."""

ACQUIRED_COUNT_HEADER: Final = "x-acquired-count"
"""Header that a quorum queue adds to a message which it delivers again, from RabbitMQ 4 on."""

DELIVERY_COUNT_HEADER: Final = "x-delivery-count"
"""The same header before RabbitMQ 4; from 4.3 on it counts only failed deliveries."""

DELIVERIES: Final = "rabbitmq-deliveries"
"""System property: how often the broker had delivered the message before, to any consumer. Missing
if it had not; a message that was prefetched and not handled counts, too."""

UNREADABLE: Final = "rabbitmq-unreadable"
"""System property: the names of properties and headers that are missing, because what the publisher
sent cannot be read."""


class QueueEvent(LazyEvent, filled=("sequence_number",)):
    """A ``ReceivedEvent`` over a message of a queue."""

    __slots__ = ("_arrived_at", "_message")
    _message: Delivery
    _arrived_at: datetime

    def __init__(self, message: Delivery, sequence_number: int, arrived_at: datetime) -> None:
        """Keep the message, and when it arrived."""
        _set_message(self, message)
        _set_sequence_number(self, sequence_number)
        _set_arrived_at(self, arrived_at)

    def _decoded_body(self) -> bytes:
        return bytes(self._message.body)

    def _decoded(self, name: str) -> Mapping[str, object]:
        if name == "offset":
            return {name: offset_text(self.sequence_number)}
        if name == "enqueued_time":
            return {name: _aware(self._message.header.properties.timestamp) or self._arrived_at}
        return _attached(self._message)


_set_message: Final = setter_of(QueueEvent, "_message")
_set_sequence_number: Final = setter_of(QueueEvent, "sequence_number")
_set_arrived_at: Final = setter_of(QueueEvent, "_arrived_at")


def offset_text(sequence_number: int) -> str:
    """Return an offset in the form of a checkpoint."""
    return f"{QUEUE_OFFSET_PREFIX}{sequence_number}"


def _attached(message: Delivery) -> dict[str, object]:
    properties = message.header.properties
    headers = dict(properties.headers or {})
    key = headers.pop(KEY_HEADER, None)
    counts = [headers.pop(name, 0) for name in (ACQUIRED_COUNT_HEADER, DELIVERY_COUNT_HEADER)]
    known = [count for count in counts if isinstance(count, int)]
    deliveries = max(*known, int(bool(message.redelivered)), 0)
    system_properties: dict[str, object] = {DELIVERIES: deliveries} if deliveries else {}
    if UNREADABLE_HEADER in headers:
        system_properties[UNREADABLE] = headers.pop(UNREADABLE_HEADER)
    if REPLAYED_FROM_PROPERTY in headers:
        system_properties[REPLAYED_FROM] = headers.pop(REPLAYED_FROM_PROPERTY)
    return {
        "partition_key": key if isinstance(key, str) else None,
        "properties": headers,
        "system_properties": system_properties,
        "content_type": properties.content_type,
        "correlation_id": properties.correlation_id,
        "message_id": properties.message_id,
    }


def _aware(time: datetime | None) -> datetime | None:
    """Return the publisher's time in UTC, which is the zone of AMQP 0-9-1's timestamps."""
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time

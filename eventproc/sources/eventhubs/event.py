"""Convert a decoded AMQP message to the fields of a ``ReceivedEvent``.

The decoder returns both text and binary values as ``bytes``. Names are always decoded to text. A
value becomes text if it is valid UTF-8, because publishers mostly attach text; otherwise it stays
``bytes``.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Protocol

from eventproc.errors import SourceRejectedError
from eventproc.models import LastEnqueued, ReceivedEvent

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

SEQUENCE_NUMBER: Final = b"x-opt-sequence-number"
OFFSET: Final = b"x-opt-offset"
ENQUEUED_TIME: Final = b"x-opt-enqueued-time"
PARTITION_KEY: Final = b"x-opt-partition-key"

PROPERTY_NAMES: Final = (
    "message-id",
    "user-id",
    "to",
    "subject",
    "reply-to",
    "correlation-id",
    "content-type",
    "content-encoding",
    "absolute-expiry-time",
    "creation-time",
    "group-id",
    "group-sequence",
    "reply-to-group-id",
)
"""The fields of AMQP 1.0, part 3, section 3.2.4, in the order of the standard, with the names that
Azure's Python client uses."""


class Message(Protocol):
    """The sections of a decoded message; ``None`` for a section that the message does not have."""

    @property
    def delivery_annotations(self) -> Mapping[bytes, object] | None:
        """Annotations of this delivery, by the service."""

    @property
    def message_annotations(self) -> Mapping[bytes, object] | None:
        """Annotations of the event, by the service."""

    @property
    def properties(self) -> Sequence[object] | None:
        """The thirteen standard properties, in the order of the standard."""

    @property
    def application_properties(self) -> Mapping[bytes, object] | None:
        """The publisher's own properties."""

    @property
    def data(self) -> Iterable[bytes] | None:
        """The body, if it consists of one or several data sections."""

    @property
    def sequence(self) -> Sequence[object] | None:
        """The body, if it is a list of values."""

    @property
    def value(self) -> object:
        """The body, if it is a single value."""


class SystemFields(NamedTuple):
    """The event fields that come from the service's annotations and AMQP's properties."""

    system_properties: Mapping[str, object]
    content_type: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None


def to_received_event(message: Message) -> ReceivedEvent:
    """Return the event that the message carries.

    Raises:
        SourceRejectedError: it has no position in a partition, so no event hub sent it.
    """
    annotations = message.message_annotations or {}
    sequence_number, offset, enqueued_ms = checked_position(
        annotations.get(SEQUENCE_NUMBER), annotations.get(OFFSET), annotations.get(ENQUEUED_TIME)
    )
    system = system_fields_of(message)
    return ReceivedEvent(
        body=body_of(message),
        sequence_number=sequence_number,
        offset=offset,
        enqueued_time=to_time(enqueued_ms),
        partition_key=partition_key_of(message),
        properties=properties_of(message),
        system_properties=system.system_properties,
        content_type=system.content_type,
        correlation_id=system.correlation_id,
        message_id=system.message_id,
    )


def checked_position(
    sequence_number: object, offset: object, enqueued_ms: object
) -> tuple[int, str, int]:
    """Return the three values after a check of their types.

    Raises:
        SourceRejectedError: one is missing or has another type.
    """
    text = to_text(offset)
    if not (isinstance(sequence_number, int) and text and isinstance(enqueued_ms, int)):
        raise SourceRejectedError(
            "an event has no sequence number, offset or enqueued time: the server is not an event "
            "hub"
        )
    return sequence_number, text, enqueued_ms


def partition_key_of(message: Message) -> str | None:
    """Return the partition key that the publisher set."""
    return to_text((message.message_annotations or {}).get(PARTITION_KEY))


def properties_of(message: Message) -> Mapping[str, object]:
    """Return the publisher's own properties."""
    properties = message.application_properties or {}
    return {_name(name): _plain(value) for name, value in properties.items()}


def system_fields_of(message: Message) -> SystemFields:
    """Return the service's annotations and AMQP's properties, with the names of Azure's client."""
    annotations = message.message_annotations or {}
    found = {_name(name): _plain(value) for name, value in annotations.items()}
    if message.properties is None:
        return SystemFields(found)
    for name, value in zip(PROPERTY_NAMES, message.properties, strict=False):
        if value is not None:
            found[name] = _plain(value)
    return SystemFields(
        found,
        content_type=to_text(found.get("content-type")),
        correlation_id=to_text(found.get("correlation-id")),
        message_id=to_text(found.get("message-id")),
    )


def to_last_enqueued(message: Message) -> LastEnqueued | None:
    """Return the newest event of the partition according to the message, if the message has it."""
    annotations = message.delivery_annotations
    if not annotations:
        return None
    sequence_number = annotations.get(b"last_enqueued_sequence_number")
    enqueued_ms = annotations.get(b"last_enqueued_time_utc")
    if not isinstance(sequence_number, int):
        return None
    return LastEnqueued(
        sequence_number=sequence_number,
        offset=to_text(annotations.get(b"last_enqueued_offset")) or "",
        enqueued_time=(to_time(enqueued_ms) if isinstance(enqueued_ms, int) else None),
    )


def to_time(milliseconds: int) -> datetime:
    """Return the time that is this many milliseconds after the beginning of 1970."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def body_of(message: Message) -> bytes:
    """Return the body as bytes: data, text and binary values unchanged; all others as JSON."""
    if message.data is not None:
        return b"".join(message.data)
    if message.sequence is not None:
        return _json([item for section in message.sequence for item in _items(section)])
    if message.value is None:
        return b""
    if isinstance(message.value, bytes):
        return message.value
    return _json(message.value)


def _items(section: object) -> Iterable[object]:
    return section if isinstance(section, list | tuple) else (section,)


def _json(value: object) -> bytes:
    return json.dumps(_plain(value), default=str, ensure_ascii=False).encode()


def _plain(value: object) -> object:
    """Return the value with ``bytes`` replaced by text if they are valid UTF-8."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, dict):
        return {_name(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _name(name: object) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def to_text(value: object) -> str | None:
    """Return any value as text, and ``None`` as ``None``."""
    if value is None:
        return None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

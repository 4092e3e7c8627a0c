"""Convert the decoded sections of an AMQP message to the fields of a ``ReceivedEvent``.

The decoder returns both text and binary values as ``bytes``. Names are always decoded to text. A
value becomes text if it is valid UTF-8, because publishers mostly attach text; otherwise it stays
``bytes``.

Event Hubs hands a Kafka client the properties of publishers over AMQP or HTTPS as headers, each of
whose values it encodes as in AMQP 1.0. The headers of Kafka publishers come as they were sent, and
nothing says of a message which publisher it has. So a message's headers are read as AMQP values if
one of them can be nothing else: it is one whole AMQP value, and no text.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from eventproc._base.amqp import MalformedError
from eventproc.models import REPLAYED_FROM, REPLAYED_FROM_PROPERTY
from eventproc.sources._amqp.values import decode

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

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


REPLAYED_FROM_BYTES: Final = REPLAYED_FROM_PROPERTY.encode()
"""The encoded name of the property. A message without these bytes was not replayed."""


class SystemFields(NamedTuple):
    """The event fields that come from the service's annotations and AMQP's properties."""

    system_properties: Mapping[str, object]
    content_type: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None


def to_properties(application_properties: Mapping[bytes, object] | None) -> Mapping[str, object]:
    """Return the publisher's own properties, without the one that a replay of dead letters adds."""
    return {
        _name(name): plain(value)
        for name, value in (application_properties or {}).items()
        if name != REPLAYED_FROM_BYTES
    }


def to_system_fields(
    annotations: Mapping[bytes, object] | None,
    properties: Iterable[object] | None,
    application_properties: Mapping[bytes, object] | None = None,
) -> SystemFields:
    """Return the service's annotations and AMQP's properties, with the names of Azure's client.

    The thirteen properties are in the order of ``PROPERTY_NAMES``. The application properties are
    needed only if the message contains ``REPLAYED_FROM_BYTES``.
    """
    found = {_name(name): plain(value) for name, value in (annotations or {}).items()}
    if application_properties and REPLAYED_FROM_BYTES in application_properties:
        found[REPLAYED_FROM] = to_text(application_properties[REPLAYED_FROM_BYTES])
    if properties is None:
        return SystemFields(found)
    for name, value in zip(PROPERTY_NAMES, properties, strict=False):
        if value is not None:
            found[name] = plain(value)
    return SystemFields(
        found,
        content_type=to_text(found.get("content-type")),
        correlation_id=to_text(found.get("correlation-id")),
        message_id=to_text(found.get("message-id")),
    )


def to_time(milliseconds: int) -> datetime:
    """Return the time that is this many milliseconds after the beginning of 1970."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def sequence_body(sections: Iterable[object]) -> bytes:
    """Return the body of a message of sequence sections, each a list of values, as JSON."""
    return _json([item for section in sections for item in _items(section)])


def value_body(value: object) -> bytes:
    """Return the body of a message of a single value: text and bytes unchanged, others as JSON."""
    if value is None:
        return b""
    return value if isinstance(value, bytes) else _json(value)


def _items(section: object) -> Iterable[object]:
    return section if isinstance(section, list | tuple) else (section,)


def _json(value: object) -> bytes:
    return json.dumps(plain(value), default=str, ensure_ascii=False).encode()


def plain(value: object) -> object:
    """Return the value with ``bytes`` replaced by text if they are valid UTF-8."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, dict):
        return {_name(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def _name(name: object) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def to_text(value: object) -> str | None:
    """Return any value as text, and ``None`` as ``None``."""
    if value is None:
        return None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class ServiceHeaders(list[tuple[str, bytes | None]]):
    """The headers of a message of Event Hubs."""


_NOT_ONE: Final = object()


def decoded(headers: Iterable[tuple[str, bytes | None]]) -> list[tuple[str, Any]]:
    """Return the headers with their values as AMQP gives them, if their publisher used AMQP."""
    values = [(name, raw, _value_of(raw)) for name, raw in headers]
    if not any(value is not _NOT_ONE and not _is_text(raw) for _, raw, value in values):
        return [(name, raw) for name, raw, _ in values]
    return [(name, raw if value is _NOT_ONE else value) for name, raw, value in values]


def _value_of(raw: bytes | None) -> object:
    """Return the AMQP value that the bytes are, or ``_NOT_ONE``."""
    try:
        value, end = decode(raw or b"", 0)
    except MalformedError:
        return _NOT_ONE
    return plain(value) if raw is not None and end == len(raw) else _NOT_ONE


def _is_text(raw: bytes | None) -> bool:
    try:
        return raw is None or raw.decode().isprintable()
    except UnicodeDecodeError:
        return False

"""From a decoded AMQP message to the fields of a ``ReceivedEvent``.

A decoder does not tell text from bytes: both arrive as ``bytes``. Names are always
text. A *value* is taken for text where it is valid UTF-8, since text is what publishers attach,
and stays ``bytes`` where it is not.
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
"""AMQP 1.0, part 3, section 3.2.4, in its order; named as Azure's Python client names them."""


class Message(Protocol):
    """The sections of a decoded message that matter here; ``None`` where one is missing."""

    @property
    def delivery_annotations(self) -> Mapping[bytes, object] | None:
        """What the service says for this delivery alone."""

    @property
    def message_annotations(self) -> Mapping[bytes, object] | None:
        """What the service says of the event."""

    @property
    def properties(self) -> Sequence[object] | None:
        """AMQP's own thirteen properties, in the order of the standard."""

    @property
    def application_properties(self) -> Mapping[bytes, object] | None:
        """What the publisher attached."""

    @property
    def data(self) -> Iterable[bytes] | None:
        """The body, in one section or several."""

    @property
    def sequence(self) -> Sequence[object] | None:
        """The body, where it is a list of values."""

    @property
    def value(self) -> object:
        """The body, where it is one value."""


class SystemFields(NamedTuple):
    """What of an event comes out of two sections: the service's annotations, AMQP's properties."""

    system_properties: Mapping[str, object]
    content_type: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None


def to_received_event(message: Message) -> ReceivedEvent:
    """Return the event that the message carries.

    Raises:
        SourceRejectedError: it has no place in a partition, so it comes from no event hub.
    """
    annotations = message.message_annotations or {}
    sequence_number, offset, enqueued_ms = checked_place(
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


def checked_place(
    sequence_number: object, offset: object, enqueued_ms: object
) -> tuple[int, str, int]:
    """Return the three as what they must be.

    Raises:
        SourceRejectedError: one is missing, or is something else.
    """
    text = _text(offset)
    if not (isinstance(sequence_number, int) and text and isinstance(enqueued_ms, int)):
        raise SourceRejectedError(
            "an event came without sequence number, offset or enqueued time: what answers there "
            "is no event hub"
        )
    return sequence_number, text, enqueued_ms


def partition_key_of(message: Message) -> str | None:
    """What the publisher gave, for the service to choose a partition by."""
    return _text((message.message_annotations or {}).get(PARTITION_KEY))


def properties_of(message: Message) -> Mapping[str, object]:
    """What the publisher attached."""
    attached = message.application_properties or {}
    return {_name(name): _plain(value) for name, value in attached.items()}


def system_fields_of(message: Message) -> SystemFields:
    """What the service attached, and AMQP's own properties, named as Azure's client names them."""
    annotations = message.message_annotations or {}
    found = {_name(name): _plain(value) for name, value in annotations.items()}
    if message.properties is None:
        return SystemFields(found)
    for name, value in zip(PROPERTY_NAMES, message.properties, strict=False):
        if value is not None:
            found[name] = _plain(value)
    return SystemFields(
        found,
        content_type=_text(found.get("content-type")),
        correlation_id=_text(found.get("correlation-id")),
        message_id=_text(found.get("message-id")),
    )


def to_last_enqueued(message: Message) -> LastEnqueued | None:
    """What the message tells of the newest event of its partition; ``None`` if nothing."""
    told = message.delivery_annotations
    if not told:
        return None
    sequence_number = told.get(b"last_enqueued_sequence_number")
    enqueued_ms = told.get(b"last_enqueued_time_utc")
    if not isinstance(sequence_number, int):
        return None
    return LastEnqueued(
        sequence_number=sequence_number,
        offset=_text(told.get(b"last_enqueued_offset")) or "",
        enqueued_time=(to_time(enqueued_ms) if isinstance(enqueued_ms, int) else None),
    )


def to_time(milliseconds: int) -> datetime:
    """The instant so many milliseconds after the beginning of 1970."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def body_of(message: Message) -> bytes:
    """The body as bytes: data as it is; a single text or binary value too; else as JSON."""
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
    """The value with text for bytes wherever they are text."""
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


def _text(value: object) -> str | None:
    if value is None:
        return None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

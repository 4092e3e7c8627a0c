"""Convert a Kafka message to a ``ReceivedEvent``."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from eventproc.models import (
    KAFKA_KEY,
    KAFKA_TOMBSTONE,
    REPLAYED_FROM,
    REPLAYED_FROM_PROPERTY,
    ReceivedEvent,
)
from eventproc.sources.kafka.position import OFFSETS
from eventproc.sources.lazy_event import LazyEvent, filled_events

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


class Error(Protocol):
    """An error of the client."""

    def name(self) -> str:
        """The name of the error in Kafka or librdkafka."""

    def str(self) -> str:
        """A description for people."""


class Message(Protocol):
    """A message of the client, or an error in place of one."""

    def error(self) -> Error | None:
        """The error, if this is not a message."""

    def partition(self) -> Any:  # noqa: ANN401 - of a message always an int
        """The partition of the message; ``None`` for some errors."""

    def offset(self) -> Any:  # noqa: ANN401 - of a message always an int
        """The offset of the message in its partition; ``None`` for some errors."""

    def key(self) -> bytes | None:
        """The key of the message."""

    def value(self) -> bytes | None:
        """The body of the message; ``None`` for a tombstone."""

    def headers(self) -> Sequence[tuple[str, bytes | None]] | None:
        """The publisher's headers; a name may occur more than once."""

    def timestamp(self) -> tuple[int, int]:
        """The kind of the time, and the time in milliseconds since 1970."""

    def __len__(self) -> int:
        """The size of the value in bytes."""


class KafkaEvent(LazyEvent):
    """A ``ReceivedEvent`` over a Kafka message."""

    __slots__ = ()
    _message: Message

    def __init__(self, message: Message) -> None:
        """Keep the message."""
        super().__init__(message, message.offset())

    def _decoded(self, name: str) -> Mapping[str, object]:
        if name == "body":
            return {name: self._message.value() or b""}
        if name == "offset":
            return {name: OFFSETS.text(self.sequence_number)}
        if name == "enqueued_time":
            return {name: enqueued_time(self._message)}
        return _attached(self._message)


class _UnfilledEvent(KafkaEvent):
    """An event that ``events_of`` fills: Python makes one without a call of ``__init__``."""

    __slots__ = ()
    __init__ = object.__init__


def events_of(messages: Sequence[Message]) -> Sequence[ReceivedEvent]:
    """Return an event over each message; faster than a call of the class for each."""
    return filled_events(
        [_UnfilledEvent() for _ in messages],
        messages,
        [message.offset() for message in messages],
        [message.value() or b"" for message in messages],
    )


def _attached(message: Message) -> dict[str, object]:
    """Return the fields that come from key and headers, and those that Kafka does not have."""
    key, headers = message.key(), message.headers()
    system_properties: dict[str, object] = {}
    if message.value() is None:
        system_properties[KAFKA_TOMBSTONE] = True
    if key is not None and isinstance(_plain(key), bytes):
        system_properties[KAFKA_KEY] = key
    properties = _properties(headers) if headers else {}
    if REPLAYED_FROM_PROPERTY in properties:
        system_properties[REPLAYED_FROM] = properties.pop(REPLAYED_FROM_PROPERTY)
    content_type = properties.get("content-type")
    return {
        "partition_key": partition_key(message),
        "properties": properties,
        "system_properties": system_properties,
        "content_type": content_type if isinstance(content_type, str) else None,
        "correlation_id": None,
        "message_id": None,
    }


def partition_key(message: Message) -> str | None:
    """Return the message's key as text; bytes that are no text are written as escapes."""
    key = message.key()
    return None if key is None else key.decode(errors="backslashreplace")


def enqueued_time(message: Message) -> datetime:
    """Return the message's time: the broker's or the producer's, depending on the topic."""
    return _EPOCH + timedelta(milliseconds=enqueued_ms(message))


def enqueued_ms(message: Message) -> int:
    """Return the message's time in milliseconds since 1970.

    A producer may send any number, for example microseconds. Values out of range are clamped to
    1970 or to the last possible time.
    """
    return min(max(0, message.timestamp()[1]), _LAST_MS)


def _properties(headers: Sequence[tuple[str, bytes | None]]) -> dict[str, object]:
    """Return the headers by name; a name that occurs repeatedly has a tuple of its values."""
    properties: dict[str, object] = {}
    repeated: dict[str, list[object]] = {}
    for name, value in headers:
        plain = None if value is None else _plain(value)
        if name in properties:
            repeated.setdefault(name, [properties[name]]).append(plain)
        else:
            properties[name] = plain
    return properties | {name: tuple(values) for name, values in repeated.items()}


def _plain(value: bytes) -> str | bytes:
    """Return the value as text if it is valid UTF-8, the same as for events over AMQP."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value

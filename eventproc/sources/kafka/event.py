"""From a Kafka message to a ``ReceivedEvent``."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from eventproc.models import ReceivedEvent
from eventproc.sources.kafka.position import offset_text

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

TOMBSTONE: Final = "kafka-tombstone"
"""System property: true where the message has no value at all, which deletes its key in a
compacted topic. The body is empty then, as it is for an empty value."""

KEY: Final = "kafka-key"
"""System property: the key in bytes, where it is no text."""


class Error(Protocol):
    """What went wrong, in the client's words."""

    def name(self) -> str:
        """As Kafka or librdkafka call it."""

    def str(self) -> str:
        """For people."""


class Message(Protocol):
    """A message as the client hands it out, or an error in place of one."""

    def error(self) -> Error | None:
        """Not ``None``: it is no message."""

    def partition(self) -> int | None:
        """Where it is from."""

    def offset(self) -> int | None:
        """Its number in the partition."""

    def key(self) -> bytes | None:
        """What ties it to others."""

    def value(self) -> bytes | None:
        """Its body; ``None`` for a tombstone."""

    def headers(self) -> Sequence[tuple[str, bytes | None]] | None:
        """What the publisher attached; a name may come more than once."""

    def timestamp(self) -> tuple[int, int]:
        """Of what kind the time is, and the time in milliseconds since 1970."""

    def __len__(self) -> int:
        """The bytes of its value."""


def to_received_event(message: Message) -> ReceivedEvent:
    """Return the event that the message carries."""
    offset = message.offset()
    assert offset is not None, "a message has an offset, an error need not"
    body, key, headers = message.value(), message.key(), message.headers()
    system_properties: dict[str, object] = {}
    if body is None:
        system_properties[TOMBSTONE] = True
    partition_key = None
    if key is not None:
        named = _plain(key)
        if isinstance(named, bytes):
            system_properties[KEY] = named
            named = named.decode(errors="backslashreplace")
        partition_key = named
    properties = _properties(headers) if headers else {}
    content_type = properties.get("content-type")
    return ReceivedEvent(
        body=b"" if body is None else body,
        sequence_number=offset,
        offset=offset_text(offset),
        enqueued_time=enqueued_time(message),
        partition_key=partition_key,
        properties=properties,
        system_properties=system_properties,
        content_type=content_type if isinstance(content_type, str) else None,
    )


def enqueued_time(message: Message) -> datetime:
    """The message's time: the broker's or the producer's, as the topic is set up."""
    return _EPOCH + timedelta(milliseconds=max(0, message.timestamp()[1]))


def _properties(headers: Sequence[tuple[str, bytes | None]]) -> dict[str, object]:
    """The headers by name; one that comes more than once has all its values, in order."""
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
    """Text where it is text, as in what comes over AMQP."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value

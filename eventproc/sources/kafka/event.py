"""From a Kafka message to a ``ReceivedEvent``."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from eventproc.models import EVENT_FIELDS, ReceivedEvent
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


class KafkaEvent(ReceivedEvent):
    """A ``ReceivedEvent`` over a message.

    Its fields are slots that stay empty until somebody reads them: then, and only then,
    ``__getattr__`` is asked, and fills them.
    """

    __slots__ = ("_message",)

    def __init__(self, message: Message) -> None:
        """Keep the message; only its number is wanted of every event."""
        _set_message(self, message)
        _set_sequence_number(self, message.offset())

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the field is
        """Decode the field, and those that are found on the way."""
        if name not in _SETTERS:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        if name == "body":
            _SETTERS[name](self, self._message.value() or b"")
        elif name == "offset":
            _SETTERS[name](self, offset_text(self.sequence_number))
        elif name == "enqueued_time":
            _SETTERS[name](self, enqueued_time(self._message))
        else:
            for field, value in _attached(self._message).items():
                _SETTERS[field](self, value)
        return getattr(self, name)


def _setter(name: str) -> Any:  # noqa: ANN401 - a slot's own method
    """How to fill a slot of an event, which is frozen for everybody else."""
    return getattr(KafkaEvent, name).__set__


_set_message: Final = _setter("_message")
_set_sequence_number: Final = _setter("sequence_number")
_SETTERS: Final = {name: _setter(name) for name in EVENT_FIELDS if name != "sequence_number"}


def _attached(message: Message) -> dict[str, object]:
    """The fields that come from key, headers and what is missing."""
    key, headers = message.key(), message.headers()
    system_properties: dict[str, object] = {}
    if message.value() is None:
        system_properties[TOMBSTONE] = True
    partition_key = None if key is None else _plain(key)
    if isinstance(partition_key, bytes):
        system_properties[KEY] = partition_key
        partition_key = partition_key.decode(errors="backslashreplace")
    properties = _properties(headers) if headers else {}
    content_type = properties.get("content-type")
    return {
        "partition_key": partition_key,
        "properties": properties,
        "system_properties": system_properties,
        "content_type": content_type if isinstance(content_type, str) else None,
        "correlation_id": None,
        "message_id": None,
    }


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

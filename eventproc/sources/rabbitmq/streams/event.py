"""Convert a message of a stream to a ``ReceivedEvent``.

A message is AMQP 1.0 by convention: the broker converts what was published by AMQP 0.9.1, and
clients of streams encode it. The broker does not check it, so any bytes may come; those that are no
AMQP message become the body of an event without properties.
"""

from collections.abc import Callable, Mapping
from typing import Final

from eventproc.sources.amqp.fields import (
    SystemFields,
    to_properties,
    to_system_fields,
    to_text,
    to_time,
)
from eventproc.sources.amqp.sections import (
    APPLICATION_PROPERTIES,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    EncodedMessage,
    body_of,
)
from eventproc.sources.amqp.values import MalformedError
from eventproc.sources.lazy_event import LazyEvent
from eventproc.sources.rabbitmq.streams.chunk import Chunk
from eventproc.sources.rabbitmq.streams.options import ANNOTATION, PROPERTY
from eventproc.sources.rabbitmq.streams.position import OFFSETS

NOT_AMQP: Final = "rabbitmq-not-amqp"
"""System property: true if the message is not AMQP 1.0; the body is then the whole message."""

_UNREADABLE: Final = (MalformedError, UnicodeDecodeError, OverflowError, RecursionError)
"""What bytes raise that are not an AMQP message."""

Key = Callable[["StreamEvent"], str | None]
"""Returns the partition key of an event."""


class StreamEvent(LazyEvent):
    """A ``ReceivedEvent`` over an encoded message."""

    __slots__ = ("_chunk", "_key")
    _message: bytes
    _chunk: Chunk
    _key: Key

    def __init__(self, message: bytes, sequence_number: int, chunk: Chunk, key: Key) -> None:
        """Keep the message, and the chunk that it came in."""
        super().__init__(message, sequence_number)
        _set_chunk(self, chunk)
        _set_key(self, key)

    def _decoded(self, name: str) -> Mapping[str, object]:
        if name == "body":
            return {name: _body(self._message)}
        if name == "offset":
            return {name: OFFSETS.text(self.sequence_number)}
        if name == "enqueued_time":
            return {name: to_time(self._chunk.time_ms)}
        if name == "partition_key":
            return {name: self._key(self)}
        return _attached(self._message)


_set_chunk: Final = StreamEvent.__dict__["_chunk"].__set__
_set_key: Final = StreamEvent.__dict__["_key"].__set__
"""They fill a slot of an event although the class is frozen."""


def _body(payload: bytes) -> bytes:
    try:
        return body_of(payload, 0)
    except _UNREADABLE:
        return payload


def _attached(payload: bytes) -> Mapping[str, object]:
    """Return the fields that come from annotations and properties."""
    try:
        message = EncodedMessage(payload)
        system = to_system_fields(message.one(MESSAGE_ANNOTATIONS), message.one(PROPERTIES))
        properties = to_properties(message.one(APPLICATION_PROPERTIES))
        message.body()
    except _UNREADABLE:
        system, properties = SystemFields({NOT_AMQP: True}), {}
    return {"properties": properties, **system._asdict()}


def key_reader(named: str) -> Key:
    """Return a function that reads the partition key where ``StreamOptions.key`` says."""
    if named.startswith(PROPERTY):
        name = named.removeprefix(PROPERTY)
        return lambda event: to_text(event.properties.get(name))
    name = named.removeprefix(ANNOTATION)
    return lambda event: to_text(event.system_properties.get(name))

"""Convert a message of a stream to a ``ReceivedEvent``.

A message is AMQP 1.0 by convention: the broker converts what was published by AMQP 0.9.1, and
clients of streams encode it. The broker does not check it. Bytes that are not an AMQP message
become the body of an event without properties.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
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
from eventproc.sources.lazy_event import LazyEvent, fill_all, setter_of
from eventproc.sources.rabbitmq.streams.options import ANNOTATION, PROPERTY
from eventproc.sources.rabbitmq.streams.position import OFFSETS

NOT_AMQP: Final = "rabbitmq-not-amqp"
"""System property: true if the message is not AMQP 1.0; the body is then the whole message."""

_UNREADABLE: Final = (MalformedError, UnicodeDecodeError, OverflowError, RecursionError)
"""The errors of decoding bytes that are not an AMQP message."""

Key = Callable[["StreamEvent"], str | None]
"""Returns the partition key of an event."""


class StreamEvent(LazyEvent, filled=("sequence_number",)):
    """A ``ReceivedEvent`` over an encoded message."""

    __slots__ = ("_key", "_message", "_time_ms")
    _message: bytes
    _time_ms: int
    _key: Key

    def _decoded_body(self) -> bytes:
        try:
            return body_of(self._message, 0)
        except _UNREADABLE:
            return self._message

    def _encoded(self) -> bytes:
        return self._message

    def _decoded(self, name: str) -> Mapping[str, object]:
        if name == "offset":
            return {name: OFFSETS.text(self.sequence_number)}
        if name == "enqueued_time":
            return {name: to_time(self._time_ms)}
        if name == "partition_key":
            return {name: self._key(self)}
        return _attached(self._message)


_set_message: Final = setter_of(StreamEvent, "_message")
_set_sequence_number: Final = setter_of(StreamEvent, "sequence_number")
_set_time_ms: Final = setter_of(StreamEvent, "_time_ms")
_set_key: Final = setter_of(StreamEvent, "_key")


def events_of(messages: Sequence[bytes], first: int, time_ms: int, key: Key) -> list[StreamEvent]:
    """Return the events of consecutive messages of a chunk.

    Events do not refer to their chunk: otherwise one event that a handler keeps would keep the
    whole chunk in memory.

    Args:
        messages: The encoded messages.
        first: The offset of the first one.
        time_ms: When the broker stored the chunk, in milliseconds since 1970.
        key: Reads an event's partition key.
    """
    events = list(map(object.__new__, repeat(StreamEvent, len(messages))))
    fill_all(_set_message, events, messages)
    fill_all(_set_sequence_number, events, range(first, first + len(messages)))
    fill_all(_set_time_ms, events, repeat(time_ms))
    fill_all(_set_key, events, repeat(key))
    return events


def _attached(payload: bytes) -> Mapping[str, object]:
    """Return the fields that come from annotations and properties."""
    try:
        message = EncodedMessage(payload)
        attached = message.one(APPLICATION_PROPERTIES)
        system = to_system_fields(
            message.one(MESSAGE_ANNOTATIONS), message.one(PROPERTIES), attached
        )
        properties = to_properties(attached)
        message.body()
    except _UNREADABLE:
        system, properties = SystemFields({NOT_AMQP: True}), {}
    return {"properties": properties, **system._asdict()}


def key_reader(named: str) -> Key:
    """Return a function that reads the partition key; *named* is ``StreamOptions.key``."""
    if named.startswith(PROPERTY):
        name = named.removeprefix(PROPERTY)
        return lambda event: to_text(event.properties.get(name))
    name = named.removeprefix(ANNOTATION)
    return lambda event: to_text(event.system_properties.get(name))

"""Convert a message of a stream to a ``ReceivedEvent``.

A message is AMQP 1.0 by convention: the broker converts what was published by AMQP 0.9.1, and
clients of streams encode it. The broker does not check it, so any bytes may come; those that are no
AMQP message become the body of an event without properties.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from eventproc.models import EVENT_FIELDS, ReceivedEvent
from eventproc.sources.amqp.fields import (
    SystemFields,
    to_properties,
    to_system_fields,
    to_text,
)
from eventproc.sources.amqp.sections import (
    APPLICATION_PROPERTIES,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    EncodedMessage,
    body_of,
)
from eventproc.sources.amqp.values import MalformedError
from eventproc.sources.rabbitmq.chunk import Chunk
from eventproc.sources.rabbitmq.options import ANNOTATION, PROPERTY
from eventproc.sources.rabbitmq.position import offset_text, time_of

NOT_AMQP: Final = "rabbitmq-not-amqp"
"""System property: true if the message is not AMQP 1.0; the body is then the whole message."""

_UNREADABLE: Final = (MalformedError, UnicodeDecodeError, OverflowError, RecursionError)
"""What bytes raise that are not an AMQP message."""

Key = Callable[["StreamEvent"], str | None]
"""Returns the partition key of an event."""


class StreamEvent(ReceivedEvent):
    """A ``ReceivedEvent`` over an encoded message.

    Its fields are slots that are empty at first. Python calls ``__getattr__`` for an empty slot,
    which decodes the field and fills the slot.
    """

    __slots__ = ("_chunk", "_key", "_payload")

    def __init__(self, payload: bytes, sequence_number: int, chunk: Chunk, key: Key) -> None:
        """Keep the message. Only the sequence number is known for every event."""
        _set_payload(self, payload)
        _set_sequence_number(self, sequence_number)
        _set_chunk(self, chunk)
        _set_key(self, key)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the field is
        """Decode the field, and those that are decoded together with it."""
        if name not in _SETTERS:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        if name == "body":
            value: object = _body(self._payload)
        elif name == "offset":
            value = offset_text(self.sequence_number)
        elif name == "enqueued_time":
            value = self._time()
        elif name == "partition_key":
            value = self._key(self)
        else:
            for field, decoded in _attached(self._payload).items():
                _SETTERS[field](self, decoded)
            return getattr(self, name)
        _SETTERS[name](self, value)
        return value

    def _time(self) -> datetime:
        return time_of(self._chunk.time_ms)


def _setter(name: str) -> Any:  # noqa: ANN401 - a slot's own method
    """Return a function that fills a slot of an event although the class is frozen."""
    return getattr(StreamEvent, name).__set__


_set_payload: Final = _setter("_payload")
_set_chunk: Final = _setter("_chunk")
_set_key: Final = _setter("_key")
_set_sequence_number: Final = _setter("sequence_number")
_SETTERS: Final = {name: _setter(name) for name in EVENT_FIELDS if name != "sequence_number"}


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
    """Return a function that reads the partition key where ``RabbitStreamOptions.key`` says."""
    if named.startswith(PROPERTY):
        name = named.removeprefix(PROPERTY)
        return lambda event: to_text(event.properties.get(name))
    name = named.removeprefix(ANNOTATION)
    return lambda event: to_text(event.system_properties.get(name))

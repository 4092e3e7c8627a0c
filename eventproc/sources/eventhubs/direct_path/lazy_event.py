"""Events that stay encoded; each field is decoded once, at its first use.

Rule: sequence number, offset and time of an event are checked when it is received. So a message
that is not an event raises an error from ``receive``, and not in a handler.
"""

from collections.abc import Iterable
from typing import Any, Final

from eventproc.errors import SourceRejectedError
from eventproc.models import LastEnqueued, ReceivedEvent
from eventproc.sources.amqp.fields import (
    REPLAYED_FROM_BYTES,
    SystemFields,
    to_properties,
    to_system_fields,
    to_text,
    to_time,
)
from eventproc.sources.amqp.sections import (
    APPLICATION_PROPERTIES,
    DELIVERY_ANNOTATIONS,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    EncodedMessage,
    body_of,
)
from eventproc.sources.amqp.values import MalformedError
from eventproc.sources.eventhubs.direct_path.annotations import NO_KEY, PositionReader
from eventproc.sources.eventhubs.event import checked_position, to_last_enqueued

_UNREADABLE: Final = (MalformedError, UnicodeDecodeError, OverflowError, RecursionError)
"""What malformed messages raise: invalid bytes, text that is not UTF-8, a time out of range, and
values that are nested too deeply."""


class LazyEvent(ReceivedEvent):
    """A ``ReceivedEvent`` over an encoded message.

    Its fields are slots that are empty at first. Python calls ``__getattr__`` for an empty slot,
    which decodes the field and fills the slot. Later reads cost as much as for any object.
    """

    __slots__ = ("_after", "_enqueued_ms", "_key", "_payload")

    def __init__(  # noqa: PLR0917 - called for each event; keyword arguments would cost 10 % more
        self,
        payload: bytes,
        sequence_number: int,
        offset: str,
        enqueued_ms: int,
        key: object,
        after: int,
    ) -> None:
        """Keep the encoded message and key; *after* is the end index of the annotations."""
        _set_payload(self, payload)
        _set_sequence_number(self, sequence_number)
        _set_offset(self, offset)
        _set_enqueued_ms(self, enqueued_ms)
        _set_key(self, key)
        _set_after(self, after)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the field is
        """Decode the field, and all fields of the same section."""
        if name not in _SETTERS:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        try:
            value = self._decode(name)
        except _UNREADABLE as error:
            raise SourceRejectedError(
                f"event {self.sequence_number} cannot be decoded: {error}"
            ) from error
        _SETTERS[name](self, value)
        return value

    def _decode(self, name: str) -> object:
        if name == "body":
            return body_of(self._payload, self._after)
        if name == "enqueued_time":
            return to_time(self._enqueued_ms)
        if name == "partition_key":
            return None if self._key == NO_KEY else to_text(self._key)
        message = EncodedMessage(self._payload)
        if name == "properties":
            return to_properties(_checked(message.one(APPLICATION_PROPERTIES), dict))
        is_replayed = REPLAYED_FROM_BYTES in self._payload
        system = to_system_fields(
            _checked(message.one(MESSAGE_ANNOTATIONS), dict),
            _checked(message.one(PROPERTIES), list),
            _checked(message.one(APPLICATION_PROPERTIES), dict) if is_replayed else None,
        )
        for field in SystemFields._fields:
            _SETTERS[field](self, getattr(system, field))
        return getattr(system, name)


def _checked(section: Any, kind: type) -> Any:  # noqa: ANN401 - as the service sent it
    """Return a decoded section, or ``None`` if the message does not have it."""
    if section is not None and not isinstance(section, kind):
        raise MalformedError(f"a section is a {type(section).__name__}, not a {kind.__name__}")
    return section


def _setter(name: str) -> Any:  # noqa: ANN401 - a slot's own method
    """Return a function that fills a slot of an event although the class is frozen."""
    return getattr(LazyEvent, name).__set__


_set_payload: Final = _setter("_payload")
_set_enqueued_ms: Final = _setter("_enqueued_ms")
_set_key: Final = _setter("_key")
_set_after: Final = _setter("_after")
_set_sequence_number: Final = _setter("sequence_number")
_set_offset: Final = _setter("offset")

_SETTERS: Final = {
    name: _setter(name)
    for name in ("body", "enqueued_time", "partition_key", "properties", *SystemFields._fields)
}


class EventReader:
    """Builds events from the encoded messages of one link."""

    def __init__(self) -> None:
        self._position_of = PositionReader().position_of

    def read(self, payloads: Iterable[bytes]) -> list[ReceivedEvent]:
        """Return an event for each message.

        Raises:
            SourceRejectedError: a message has no position in a partition, so it is not an event.
        """
        position_of = self._position_of
        events: list[ReceivedEvent] = []
        try:
            for payload in payloads:
                (number, offset, enqueued_ms, key), after = position_of(payload)
                position = checked_position(number, offset, enqueued_ms)
                events.append(LazyEvent(payload, *position, key, after))
        except _UNREADABLE as error:
            raise SourceRejectedError(f"a received message is not an event: {error}") from error
        return events


def last_enqueued_in(payload: bytes) -> LastEnqueued | None:
    """Return the newest event of the partition according to the message, if the message has it."""
    try:
        return to_last_enqueued(EncodedMessage(payload).one(DELIVERY_ANNOTATIONS))
    except _UNREADABLE:
        return None

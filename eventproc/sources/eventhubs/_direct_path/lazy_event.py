"""Events that stay encoded; each field is decoded once, at its first use.

Rule: sequence number, offset and time of an event are checked when it is received. So a message
that is not an event raises an error from ``receive``, and not in a handler.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from eventproc._base.amqp import (
    APPLICATION_PROPERTIES,
    DELIVERY_ANNOTATIONS,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    MalformedError,
)
from eventproc.errors import SourceRejectedError
from eventproc.models import LastEnqueued, ReceivedEvent
from eventproc.sources._amqp.fields import (
    REPLAYED_FROM_BYTES,
    to_properties,
    to_system_fields,
    to_text,
    to_time,
)
from eventproc.sources._amqp.sections import EncodedMessage, body_of
from eventproc.sources._lazy_event import LazyEvent, setter_of
from eventproc.sources.eventhubs._direct_path.annotations import NO_KEY, PositionReader
from eventproc.sources.eventhubs._event import checked_position, to_last_enqueued

_UNREADABLE: Final = (MalformedError, UnicodeDecodeError, OverflowError, RecursionError)
"""What malformed messages raise: invalid bytes, text that is not UTF-8, a time out of range, and
values that are nested too deeply."""


class EncodedEvent(LazyEvent, filled=("sequence_number", "offset")):
    """A ``ReceivedEvent`` over an encoded message."""

    __slots__ = ("_after", "_enqueued_ms", "_key", "_payload")
    _payload: bytes
    _enqueued_ms: int
    _key: object
    _after: int

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

    @property
    def encoded(self) -> bytes:
        return self._payload

    def _decoded_body(self) -> bytes:
        try:
            return body_of(self._payload, self._after)
        except _UNREADABLE as error:
            raise self._unreadable(error) from error

    def _decoded(self, name: str) -> Mapping[str, object]:
        try:
            return self._decoded_with(name)
        except _UNREADABLE as error:
            raise self._unreadable(error) from error

    def _encoded(self) -> bytes:
        return self._payload

    def _unreadable(self, error: Exception) -> SourceRejectedError:
        return SourceRejectedError(f"event {self.sequence_number} cannot be decoded: {error}")

    def _decoded_with(self, name: str) -> Mapping[str, object]:
        if name == "enqueued_time":
            return {name: to_time(self._enqueued_ms)}
        if name == "partition_key":
            return {name: None if self._key == NO_KEY else to_text(self._key)}
        message = EncodedMessage(self._payload)
        if name == "properties":
            return {name: to_properties(message.one(APPLICATION_PROPERTIES))}
        is_replayed = REPLAYED_FROM_BYTES in self._payload
        return to_system_fields(
            message.one(MESSAGE_ANNOTATIONS),
            message.one(PROPERTIES),
            message.one(APPLICATION_PROPERTIES) if is_replayed else None,
        )._asdict()


_set_payload: Final = setter_of(EncodedEvent, "_payload")
_set_enqueued_ms: Final = setter_of(EncodedEvent, "_enqueued_ms")
_set_key: Final = setter_of(EncodedEvent, "_key")
_set_after: Final = setter_of(EncodedEvent, "_after")
_set_sequence_number: Final = setter_of(EncodedEvent, "sequence_number")
_set_offset: Final = setter_of(EncodedEvent, "offset")


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
                events.append(EncodedEvent(payload, *position, key, after))
        except _UNREADABLE as error:
            raise SourceRejectedError(f"a received message is not an event: {error}") from error
        return events


def last_enqueued_in(payload: bytes) -> LastEnqueued | None:
    """Return the newest event of the partition according to the message, if the message has it."""
    try:
        return to_last_enqueued(EncodedMessage(payload).one(DELIVERY_ANNOTATIONS))
    except _UNREADABLE:
        return None

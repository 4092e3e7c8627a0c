"""Events that stay as they came, and are decoded where somebody looks at them, once.

Rule: an event has its place before anybody gets it. So a message that is no event is refused where
it was received, and never surprises a handler.
"""

from collections.abc import Iterable
from typing import Any, Final

from eventproc.errors import SourceRejectedError
from eventproc.models import LastEnqueued, ReceivedEvent
from eventproc.sources.eventhubs.amqp_values import MalformedError, skip
from eventproc.sources.eventhubs.event import (
    SystemFields,
    body_of,
    checked_place,
    partition_key_of,
    properties_of,
    system_fields_of,
    to_last_enqueued,
    to_time,
)
from eventproc.sources.eventhubs.positions import PlaceReader
from eventproc.sources.eventhubs.sections import EncodedMessage

_BEFORE_BODY: Final = (b"\x00\x53\x73", b"\x00\x53\x74")
_DATA: Final = b"\x00\x53\x75\xa0"
_LARGE_DATA: Final = b"\x00\x53\x75\xb0"


class WireEvent(ReceivedEvent):
    """A ``ReceivedEvent`` over an encoded message.

    Its fields are slots that stay empty until somebody reads them: then, and only then,
    ``__getattr__`` is asked, and fills them. A second look costs what it costs at any object.
    """

    __slots__ = ("_after", "_enqueued_ms", "_payload")

    def __init__(
        self, payload: bytes, sequence_number: int, offset: str, enqueued_ms: int, after: int
    ) -> None:
        """Keep the message; ``after`` is where its annotations end."""
        _set_payload(self, payload)
        _set_sequence_number(self, sequence_number)
        _set_offset(self, offset)
        _set_enqueued_ms(self, enqueued_ms)
        _set_after(self, after)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the field is
        """Decode the field, and those that are found on the way."""
        if name not in _SETTERS:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        try:
            value = self._decode(name)
        except MalformedError as error:
            raise SourceRejectedError(
                f"event {self.sequence_number} cannot be decoded: {error}"
            ) from error
        _SETTERS[name](self, value)
        return value

    def _decode(self, name: str) -> object:
        if name == "body":
            return self._decode_body()
        if name == "enqueued_time":
            return to_time(self._enqueued_ms)
        message = EncodedMessage(self._payload)
        if name == "partition_key":
            return partition_key_of(message)
        if name == "properties":
            return properties_of(message)
        system = system_fields_of(message)
        for field in SystemFields._fields:
            _SETTERS[field](self, getattr(system, field))
        return getattr(system, name)

    def _decode_body(self) -> bytes:
        """Take the body out from behind what stands before it, if it is one piece of data."""
        payload: bytes = self._payload
        at: int = self._after
        while payload.startswith(_BEFORE_BODY, at):
            at = skip(payload, at + 3)
        if payload.startswith(_DATA, at):
            begin = at + 5
            if begin + payload[at + 4] == len(payload):
                return payload[begin:]
        elif payload.startswith(_LARGE_DATA, at):
            begin = at + 8
            if begin + int.from_bytes(payload[at + 4 : begin]) == len(payload):
                return payload[begin:]
        return body_of(EncodedMessage(payload))


def _setter(name: str) -> Any:  # noqa: ANN401 - a slot's own method
    """How to fill a slot of an event, which is frozen for everybody else."""
    return getattr(WireEvent, name).__set__


_set_payload: Final = _setter("_payload")
_set_enqueued_ms: Final = _setter("_enqueued_ms")
_set_after: Final = _setter("_after")
_set_sequence_number: Final = _setter("sequence_number")
_set_offset: Final = _setter("offset")

_SETTERS: Final = {
    name: _setter(name)
    for name in ("body", "enqueued_time", "partition_key", "properties", *SystemFields._fields)
}


class EventReader:
    """Makes events of the messages of one link."""

    def __init__(self) -> None:
        self._place_of = PlaceReader().place_of

    def read(self, payloads: Iterable[bytes]) -> list[ReceivedEvent]:
        """Return an event for each message.

        Raises:
            SourceRejectedError: one is none: it has no place in a partition.
        """
        place_of = self._place_of
        events: list[ReceivedEvent] = []
        try:
            for payload in payloads:
                (number, offset, enqueued_ms), after = place_of(payload)
                place = checked_place(number, offset, enqueued_ms)
                events.append(WireEvent(payload, *place, after))
        except (MalformedError, UnicodeDecodeError) as error:
            raise SourceRejectedError(f"what came is no event: {error}") from error
        return events


def last_enqueued_in(payload: bytes) -> LastEnqueued | None:
    """What the message tells of the newest event of its partition; ``None`` if nothing."""
    try:
        return to_last_enqueued(EncodedMessage(payload))
    except MalformedError:
        return None

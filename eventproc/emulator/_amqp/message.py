"""Parses messages, and adds the hub's annotations to them. Pure.

Rule: the hub does not rewrite a producer's message. It replaces three message annotations, drops
the delivery annotations (they belong to one hop), and keeps every other byte.

http://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-messaging-v1.0-os.html#section-message-format
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from eventproc._base.amqp import (
    APPLICATION_PROPERTIES,
    DATA,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    VALUE,
    MalformedError,
    sections_of,
    skip,
)
from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.values import Described, Symbol, ULong, Value, decode

BATCH_FORMAT: Final = 0x80013700
"""The message format of a batch: each data section is a whole message of its own."""

PARTITION_KEY: Final = b"x-opt-partition-key"
_ASSIGNED: Final = frozenset((b"x-opt-sequence-number", b"x-opt-offset", b"x-opt-enqueued-time"))
_U32: Final = struct.Struct(">I")


class EventDraft(NamedTuple):
    """An event as its producer wrote it, split where the hub's annotations are inserted."""

    header: bytes
    own_annotations: bytes
    """The producer's annotations as encoded keys and values, without those the hub assigns."""
    own_count: int
    """Keys and values in ``own_annotations``."""
    rest: bytes
    partition_key: str | None


class StoredEvent(NamedTuple):
    """An event in a partition's log."""

    sequence_number: int
    offset: int
    enqueued_ms: int
    payload: bytes
    """The whole message as it is delivered."""
    header_length: int
    """Position in ``payload`` at which delivery annotations can be inserted."""

    @property
    def body(self) -> bytes:
        """The data sections, joined; empty for a message with another kind of body."""
        return b"".join(section for section in read_message(self.payload).data)

    @property
    def partition_key(self) -> str | None:
        """The key that chose the partition, if there was one."""
        key = self.annotations.get("x-opt-partition-key")
        return key if isinstance(key, str) else None

    @property
    def annotations(self) -> dict[Value, Value]:
        """The message annotations, the hub's and the producer's."""
        return read_message(self.payload).annotations

    @property
    def application_properties(self) -> dict[Value, Value]:
        """The producer's application properties, with the types that they were sent with."""
        return read_message(self.payload).application_properties


@dataclass(slots=True)
class Message:
    """A fully decoded message, for requests and assertions; events are not decoded on their way."""

    annotations: dict[Value, Value]
    properties: list[Value]
    application_properties: dict[Value, Value]
    data: list[bytes]
    value: Value = None

    def property_at(self, index: int) -> Value:
        """Return a field of the properties section: 0 message-id, 4 reply-to, 5 correlation-id."""
        return self.properties[index] if index < len(self.properties) else None


def _sections(message: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield each section: its code, and where it, its value and the value's end are.

    Raises:
        MalformedError: The bytes are not a message.
    """
    start = 0
    for code, body, end in sections_of(message):
        if not HEADER <= code <= FOOTER:
            raise MalformedError(f"no section of a message has the code 0x{code:02x}")
        yield code, start, body, end
        start = end


def read_message(message: bytes) -> Message:
    """Decode a message.

    Raises:
        MalformedError: The bytes are not a message.
    """
    result = Message({}, [], {}, [])
    for code, _, body, _ in _sections(message):
        value, _ = decode(message, body)
        match code, value:
            case 0x72, dict():
                result.annotations = value
            case 0x73, list():
                result.properties = value
            case 0x74, dict():
                result.application_properties = value
            case 0x75, bytes():
                result.data.append(value)
            case 0x77, _:
                result.value = value
            case _:
                pass
    return result


def write_message(
    *, correlation_id: Value, application_properties: dict[Value, Value], value: Value = None
) -> bytes:
    """Encode a response of ``$cbs`` or ``$management``."""
    properties: list[Value] = [None] * 13
    properties[5] = correlation_id
    return b"".join(
        (
            encode(Described(ULong(PROPERTIES), properties)),
            encode(Described(ULong(APPLICATION_PROPERTIES), application_properties)),
            encode(Described(ULong(VALUE), value)),
        )
    )


# --- from a producer's message to drafts ---------------------------------------------------------


def drafts_of(message: bytes, message_format: int) -> list[EventDraft]:
    """Return the events of one transfer from a producer: one, or a batch.

    A partition key on the batch's envelope applies to every event in it without its own key.

    Raises:
        MalformedError: The message or one of a batch's events cannot be read.
    """
    if message_format != BATCH_FORMAT:
        return [draft_of(message)]
    key = None
    events = []
    for code, _, body, end in _sections(message):
        if code == DATA:
            events.append(_binary(message, body, end))
        elif code == MESSAGE_ANNOTATIONS:
            key = _own_annotations(message, body)[2]
    drafts = [draft_of(event) for event in events]
    return drafts if key is None else [_with_key(draft, key) for draft in drafts]


def draft_of(message: bytes) -> EventDraft:
    """Split one event where the hub's annotations are inserted."""
    header = own = b""
    count = 0
    key = None
    rest = None
    for code, start, body, end in _sections(message):
        if code >= PROPERTIES:
            rest = start if rest is None else rest
        elif rest is not None:
            raise MalformedError("a message's sections are out of order")
        elif code == HEADER:
            header = message[start:end]
        elif code == MESSAGE_ANNOTATIONS:
            own, count, key = _own_annotations(message, body)
    if rest is None:
        raise MalformedError("a message has no body")
    return EventDraft(header, own, count, message[rest:], key)


def _binary(message: bytes, at: int, end: int) -> bytes:
    code = message[at]
    if code == 0xA0:  # binary, length in one byte
        return message[at + 2 : end]
    if code == 0xB0:  # binary, length in four
        return message[at + 5 : end]
    raise MalformedError("a data section is not binary")


def _with_key(draft: EventDraft, key: str) -> EventDraft:
    if draft.partition_key is not None:
        return draft
    entry = encode(Symbol(PARTITION_KEY.decode())) + encode(key)
    return draft._replace(
        own_annotations=draft.own_annotations + entry,
        own_count=draft.own_count + 2,
        partition_key=key,
    )


def _own_annotations(message: bytes, at: int) -> tuple[bytes, int, str | None]:
    """Return the producer's own annotations, still encoded, and the partition key."""
    code = message[at]
    if code == 0xC1:  # map, size and count in one byte each
        end, count, at = at + 2 + message[at + 1], message[at + 2], at + 3
    elif code == 0xD1:  # map, in four
        end = at + 5 + _U32.unpack_from(message, at + 1)[0]
        count, at = _U32.unpack_from(message, at + 5)[0], at + 9
    elif code == 0x40:  # null
        return b"", 0, None
    else:
        raise MalformedError("message annotations are not a map")
    own = []
    partition_key: str | None = None
    for _ in range(count // 2):
        value_at = skip(message, at)
        entry_end = skip(message, value_at)
        name = message[at + 2 : value_at]
        if name not in _ASSIGNED:
            own.append(message[at:entry_end])
            if name == PARTITION_KEY:
                value, _ = decode(message, value_at)
                partition_key = value if isinstance(value, str) else None
        at = entry_end
    if at != end or count % 2:
        raise MalformedError("message annotations have another length than they declare")
    return b"".join(own), 2 * len(own), partition_key


# --- from a draft to what is stored and delivered ------------------------------------------------

_SEQUENCE_NUMBER: Final = encode(Symbol("x-opt-sequence-number")) + b"\x81"
_ENQUEUED_TIME: Final = encode(Symbol("x-opt-enqueued-time")) + b"\x83"
_OFFSET: Final = encode(Symbol("x-opt-offset")) + b"\xa1"
_ASSIGNED_ANNOTATIONS: Final = struct.Struct(
    f">4sII{len(_SEQUENCE_NUMBER)}sq{len(_ENQUEUED_TIME)}sq{len(_OFFSET)}sB"
)
_ASSIGNED_SIZE: Final = _ASSIGNED_ANNOTATIONS.size - 8  # a map's size counts all bytes after it


def store(draft: EventDraft, sequence_number: int, offset: int, enqueued_ms: int) -> StoredEvent:
    """Encode a draft with its position in the log, once for all deliveries."""
    offset_text = b"%d" % offset
    annotations = _ASSIGNED_ANNOTATIONS.pack(
        b"\x00\x53\x72\xd1",
        _ASSIGNED_SIZE + len(offset_text) + len(draft.own_annotations),
        6 + draft.own_count,
        _SEQUENCE_NUMBER,
        sequence_number,
        _ENQUEUED_TIME,
        enqueued_ms,
        _OFFSET,
        len(offset_text),
    )
    return StoredEvent(
        sequence_number,
        offset,
        enqueued_ms,
        b"".join((draft.header, annotations, offset_text, draft.own_annotations, draft.rest)),
        len(draft.header),
    )

"""Split the bytes of a connection into the events of one link and all other frames.

Nearly every frame carries one whole event. A regular expression recognises such frames, and the
event is copied out without decoding the frame. A transfer of another form (for example one of
several frames of a large event) is decoded field by field. Every other frame is left unchanged, for
Azure's client.

Rule: a parser keeps no bytes of an incomplete frame; ``ParsedFrames.used`` says how many it used.
But it keeps the whole frames of an incomplete event, as ``FrameParser.parts``.
"""

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from eventproc._base.amqp import MalformedError, skip
from eventproc.sources._amqp.values import decode

FRAME_SIZE_MAX: Final = 1024 * 1024
"""A larger frame size counts as malformed: Azure's client negotiates 64 KiB."""

_HEAD: Final = struct.Struct(">II")
"""The head of a frame: its size; then, in one number, data offset, type and channel."""

_HEAD_SIZE: Final = 8
_FIELDS_SIZE_AT: Final = 12
_FIELDS_AT: Final = 13
"""Indexes in a transfer frame whose fields are a short list: of its size, and of its content."""

_BODY_AT_8: Final = 0x0200 << 16
"""An AMQP frame whose body begins directly after the head."""

_TRANSFER: Final = (b"\x00\x53\x14", b"\x00\x80" + bytes(7) + b"\x14")
"""The first bytes of a transfer's body: its descriptor, in the short and in the long form."""

_HANDLE, _MORE, _ABORTED = 0, 5, 9
"""Indexes of fields in a transfer."""

# Patterns for the encoded fields of a transfer; ``\x40`` is an absent value. A tag has at most 32
# bytes, and the usual sizes come first. ``_NO`` is an absent or false boolean, ``_EITHER`` any one.
_UINT: Final = rb"(?:\x40|\x43|\x52.|\x70.{4})"
_TAG: Final = rb"(?:\x40|\xa0(?:%b))" % b"|".join(
    b"%b.{%d}" % (re.escape(bytes([size])), size) for size in (4, 16, 8, *range(33))
)
_NO: Final = rb"(?:\x40|\x42|\x56\x00)"
_EITHER: Final = rb"(?:\x40|\x41|\x42|\x56.)"


def _whole_delivery(handle: int) -> re.Pattern[bytes]:
    """Return a pattern for a transfer on this link that carries one whole event.

    Its fields are handle, delivery id, delivery tag, format, settled, more, settle mode, state,
    resume, aborted, batchable; trailing ones may be missing (AMQP 1.0, part 2, section 2.7.5).
    """
    handles = [rb"\x70" + re.escape(handle.to_bytes(4))]
    if handle <= 0xFF:  # noqa: PLR2004
        handles.append(rb"\x52" + re.escape(bytes([handle])))
    if handle == 0:
        handles.append(rb"\x43")
    mode, state = rb"(?:\x40|\x50.)", rb"\x40"
    fields = (_UINT, _TAG, _UINT, _EITHER, _NO, mode, state, _NO, _NO, _EITHER)
    rest = b""
    for each in reversed(fields):
        rest = rb"(?:%b%b)?" % (each, rest)
    return re.compile(rb"\x00\x53\x14\xc0..(?:%b)%b" % (b"|".join(handles), rest), re.DOTALL)


@dataclass(slots=True)
class ParsedFrames:
    """The result of parsing some bytes."""

    payloads: Sequence[bytes] = ()
    """Encoded messages, in order."""

    others: list[bytes] = field(default_factory=list)
    """Frames that carry no message of the link, unchanged and in order."""

    transfer_count: int = 0
    """Number of frames that carried a message or a part of one."""

    delivery_count: int = 0
    """Number of messages that ended in these bytes, aborted ones included."""

    used: int = 0
    """Number of bytes in whole frames."""


class Parser(Protocol):
    """Splits the bytes of a connection into the messages of one link and all other frames."""

    def parse(self, data: bytes) -> ParsedFrames:
        """Parse bytes that begin with a frame.

        Raises:
            MalformedError: the bytes are not AMQP.
        """


class FrameParser:
    """Extracts the messages of one link from the bytes of a connection.

    Besides ``parse``, its public members are for ``ColumnFrameParser``, which does the same for
    many frames at once.
    """

    def __init__(self, channel: int, handle: int) -> None:
        self._channel: Final = channel
        self._handle: Final = handle
        self._is_whole = _whole_delivery(handle).match
        self.parts: list[bytes] = []
        """The parts so far of a message that is still incomplete."""

    def parse(self, data: bytes) -> ParsedFrames:
        """Parse bytes that begin with a frame.

        Raises:
            MalformedError: the bytes are not AMQP.
        """
        payloads: list[bytes] = []
        found = ParsedFrames(payloads)
        take, is_whole, head = payloads.append, self._is_whole, _HEAD.unpack_from
        wanted = _BODY_AT_8 | self._channel
        at, last, other_count = 0, len(data) - _HEAD_SIZE, 0
        while at <= last:
            size, kind = head(data, at)
            end = at + size
            if not _HEAD_SIZE <= size <= FRAME_SIZE_MAX:
                raise MalformedError(f"a frame says that it has {size} bytes")
            if end > len(data):
                break
            if (
                kind == wanted
                and (match := is_whole(data, at + _HEAD_SIZE, end)) is not None
                and match.end() == (begin := at + _FIELDS_AT + data[at + _FIELDS_SIZE_AT])
                and not self.parts
            ):
                take(data[begin:end])
            else:
                message = self.parse_other(data[at:end], found)
                if message is not None:
                    other_count += 1
                    take(message)
            at = end
        whole_count = len(payloads) - other_count
        found.transfer_count += whole_count
        found.delivery_count += whole_count
        found.used = at
        return found

    def parse_other(self, frame: bytes, found: ParsedFrames) -> bytes | None:
        """Parse a frame that is not one whole event; return the message that it completes.

        This counts the frame in *found*, or adds it to the ``others`` there.
        """
        size, kind = _HEAD.unpack_from(frame)
        body = (kind >> 24) * 4
        channel, is_amqp = kind & 0xFFFF, not kind & 0xFF0000
        is_transfer = is_amqp and channel == self._channel and frame.startswith(_TRANSFER, body)
        fields, begin = _fields(frame, body) if is_transfer else ([], size)
        if not is_transfer or fields[_HANDLE] != self._handle:
            found.others.append(frame)
            return None
        found.transfer_count += 1
        if fields[_ABORTED]:
            self.parts.clear()
        else:
            self.parts.append(frame[begin:])
        if fields[_MORE] and not fields[_ABORTED]:
            return None
        found.delivery_count += 1
        if not self.parts:
            return None
        message = b"".join(self.parts)
        self.parts.clear()
        return message

    def whole_at(self, frame: bytes) -> int | None:
        """Return where the message begins if the frame is one whole message; otherwise ``None``."""
        size, kind = _HEAD.unpack_from(frame)
        match = self._is_whole(frame, _HEAD_SIZE, size)
        is_whole = (
            kind == _BODY_AT_8 | self._channel
            and match is not None
            and match.end() == _FIELDS_AT + frame[_FIELDS_SIZE_AT]
        )
        return match.end() if is_whole and match is not None else None


def _fields(frame: bytes, body: int) -> tuple[list[object], int]:
    """Return the fields of a transfer, ``None`` for absent ones, and where its payload begins."""
    fields, begin = decode(frame, skip(frame, body + 1))
    if not isinstance(fields, list):
        raise MalformedError("a transfer without fields")
    return fields + [None] * (_ABORTED + 1 - len(fields)), begin

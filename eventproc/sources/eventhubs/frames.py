"""Bytes from a connection, cut into frames: the events of our link, and whatever else came.

Nearly every frame carries one whole event. Those are recognised by one regular expression, and the
event is taken out of its frame as bytes, which nobody has looked at. A transfer of another shape
(one of several frames of a large event, say) is read field by field. Every other frame is left as
it is, for Azure's client.

Rule: a cutter keeps no bytes of an incomplete frame; it says how many it used.
"""

import re
import struct
from dataclasses import dataclass, field
from typing import Final

from eventproc.sources.eventhubs.amqp_values import MalformedError, decode, skip

FRAME_SIZE_MAX: Final = 1024 * 1024
"""A frame beyond this is no frame: Azure's client asks for 64 KiB."""

_HEAD: Final = struct.Struct(">II")
"""Of a frame: its size; then where the body begins, the type, and the channel."""

_HEAD_SIZE: Final = 8
_FIELDS_SIZE_AT: Final = 12
_FIELDS_AT: Final = 13
"""In a frame with a transfer of a short list: where that list has its size, and what it covers."""

_BODY_AT_8: Final = 0x0200 << 16
"""An AMQP frame whose body follows the head at once."""

_TRANSFER: Final = (b"\x00\x53\x14", b"\x00\x80" + bytes(7) + b"\x14")
_UINT: Final = rb"(?:\x40|\x43|\x52.|\x70.{4})"
_TAG: Final = rb"(?:\x40|\xa0(?:%b))" % b"|".join(
    b"%b.{%d}" % (re.escape(bytes([size])), size) for size in (4, 16, 8, *range(33))
)
_NO: Final = rb"(?:\x40|\x42|\x56\x00)"
_EITHER: Final = rb"(?:\x40|\x41|\x42|\x56.)"


def _whole_delivery(handle: int) -> re.Pattern[bytes]:
    """What a transfer on this link looks like that holds an event as a whole.

    Handle, delivery id, delivery tag, format, settled, more, settle mode, state, resume, aborted,
    batchable; those at the end may be missing (AMQP 1.0, part 2, section 2.7.5).
    """
    handles = [rb"\x70" + re.escape(handle.to_bytes(4))]
    if handle <= 0xFF:  # noqa: PLR2004
        handles.append(rb"\x52" + re.escape(bytes([handle])))
    if handle == 0:
        handles.append(rb"\x43")
    mode, state = rb"(?:\x40|\x50.)", rb"\x40"
    fields = (_UINT, _TAG, _UINT, _EITHER, _NO, mode, state, _NO, _NO, _EITHER)
    behind = b""
    for each in reversed(fields):
        behind = rb"(?:%b%b)?" % (each, behind)
    return re.compile(rb"\x00\x53\x14\xc0..(?:%b)%b" % (b"|".join(handles), behind), re.DOTALL)


@dataclass(slots=True)
class Cut:
    """What was found in some bytes."""

    payloads: list[bytes] = field(default_factory=list)
    """Encoded messages, in order."""

    others: list[bytes] = field(default_factory=list)
    """Frames that carry none, as they came."""

    transfer_count: int = 0
    """Frames that carried a message or a part of one."""

    delivery_count: int = 0
    """Messages that ended in these bytes, also those that were taken back."""

    used: int = 0
    """How many of the bytes were whole frames."""


class FrameCutter:
    """Takes the messages of one link out of what a connection brings."""

    def __init__(self, channel: int, handle: int) -> None:
        self._handle = handle
        self._channel = channel
        self._is_whole = _whole_delivery(handle).match
        self._parts: list[bytes] = []
        """Of a message whose frames have not all come."""

    def cut(self, data: bytes) -> Cut:
        """Find the frames in the bytes, which begin with one.

        Raises:
            MalformedError: this is no AMQP.
        """
        found = Cut()
        take, is_whole, head = found.payloads.append, self._is_whole, _HEAD.unpack_from
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
                and not self._parts
            ):
                take(data[begin:end])
            else:
                other_count += self._take_other(data[at:end], found)
            at = end
        whole_count = len(found.payloads) - other_count
        found.transfer_count += whole_count
        found.delivery_count += whole_count
        found.used = at
        return found

    def _take_other(self, frame: bytes, found: Cut) -> int:
        """Take a frame that is not one whole event; return how many messages it completed."""
        size, kind = _HEAD.unpack_from(frame)
        body = (kind >> 24) * 4
        channel, is_amqp = kind & 0xFFFF, not kind & 0xFF0000
        is_transfer = is_amqp and channel == self._channel and frame.startswith(_TRANSFER, body)
        fields, begin = _fields(frame, body) if is_transfer else ([], size)
        if not is_transfer or fields[_HANDLE] != self._handle:
            found.others.append(frame)
            return 0
        found.transfer_count += 1
        if fields[_ABORTED]:
            self._parts.clear()
        else:
            self._parts.append(frame[begin:])
        if fields[_MORE] and not fields[_ABORTED]:
            return 0
        found.delivery_count += 1
        if not self._parts:
            return 0
        found.payloads.append(b"".join(self._parts))
        self._parts.clear()
        return 1


_HANDLE, _MORE, _ABORTED = 0, 5, 9
"""Fields of a transfer, by their place."""


def _fields(frame: bytes, body: int) -> tuple[list[object], int]:
    """Read the fields of a transfer, absent ones as ``None``, and where what it carries begins."""
    fields, begin = decode(frame, skip(frame, body + 1))
    if not isinstance(fields, list):
        raise MalformedError("a transfer without fields")
    return fields + [None] * (_ABORTED + 1 - len(fields)), begin

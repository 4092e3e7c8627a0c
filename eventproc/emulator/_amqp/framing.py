"""Parses a stream of bytes into protocol headers and frames, and encodes frames. Pure.

A frame has a size (4 bytes, itself included), the offset of its body (in words of 4 bytes), a type
(0 AMQP, 1 SASL) and a channel (2 bytes); then the body: empty, or a performative and its payload.

http://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-transport-v1.0-os.html#section-framing
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from eventproc._base.amqp import MalformedError

AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
HEADER_SIZE: Final = 8

AMQP_FRAME: Final = 0
SASL_FRAME: Final = 1

FRAME_SIZE_MAX: Final = 0x10000
"""Largest frame that we accept: the value of Event Hubs."""

_FRAME: Final = struct.Struct(">IBBH")


@dataclass(frozen=True, slots=True)
class ProtocolHeader:
    """The eight bytes that begin each layer of the protocol."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; an empty body is a heartbeat."""

    kind: int
    channel: int
    body: bytes


HEARTBEAT: Final = _FRAME.pack(8, 2, AMQP_FRAME, 0)


def encode_frame(body: bytes, channel: int = 0, kind: int = AMQP_FRAME) -> bytes:
    """Encode a frame around an encoded body."""
    return _FRAME.pack(len(body) + 8, 2, kind, channel) + body


class FrameParser:
    """Parses input in pieces of any size; yields complete headers and frames."""

    def __init__(self, frame_size_max: int = FRAME_SIZE_MAX) -> None:
        self._frame_size_max = frame_size_max
        self._pending = b""
        self._wanted = HEADER_SIZE

    def feed(self, data: bytes) -> Iterator[ProtocolHeader | Frame]:
        """Yield every header and frame that ``data`` completes.

        Raises:
            MalformedError: A frame has an invalid head, so nothing after it can be parsed.
        """
        if self._pending:
            data = self._pending + data
        if len(data) < self._wanted:  # join the pieces of a long frame only once
            self._pending = data
            return
        at = 0
        self._wanted = HEADER_SIZE
        while len(data) - at >= HEADER_SIZE:
            if data.startswith(b"AMQP", at):
                yield ProtocolHeader(data[at : at + HEADER_SIZE])
                at += HEADER_SIZE
                continue
            size, offset_words, kind, channel = _FRAME.unpack_from(data, at)
            if not HEADER_SIZE <= 4 * offset_words <= size <= self._frame_size_max:
                raise MalformedError(f"no frame has size {size} and data offset {offset_words}")
            if at + size > len(data):
                self._wanted = size
                break
            yield Frame(kind, channel, data[at + 4 * offset_words : at + size])
            at += size
        self._pending = data[at:]

"""Frames of AMQP 0-9-1 that the client cannot read: repaired before the client sees them.

The broker passes on whatever a publisher sent: a timestamp in microseconds, a text that is not
UTF-8. For pamqp that is a malformed frame, and aiormq closes the connection. The broker would
deliver the message again on the next one, so it would stop all partitions of each process that
owns its queue. So what cannot be read is left out, and the rest arrives with the names of what is
missing.
"""

import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from typing import Any, Final, Protocol, cast

import aio_pika
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from pamqp import decode
from pamqp.commands import Basic
from pamqp.header import ContentHeader

UNREADABLE_HEADER: Final = "x-eventproc-unreadable"
"""The header that has the names of what was left out."""

_METHOD: Final = b"\x01"
_HEADER: Final = b"\x02"
"""The first byte of a frame: its kind. All other kinds can be read."""

_FRAME: Final = struct.Struct(">BHI")
"""Kind, channel and size of the payload, which follows with one more byte."""

_DELIVER: Final = b"\x00\x3c\x00\x3c"
"""What the payload of ``Basic.Deliver`` begins with."""

_PROPERTIES_AT: Final = 14
"""Where properties begin in the payload of a header: after class, weight, body size and flags."""

_SIZES: Final = {
    b"V": 0,
    **dict.fromkeys((b"t", b"b", b"B"), 1),
    **dict.fromkeys((b"s", b"u"), 2),
    **dict.fromkeys((b"I", b"i", b"f"), 4),
    b"D": 5,
    **dict.fromkeys((b"l", b"L", b"d", b"T"), 8),
}
"""Bytes of a value in a table, by its type. The values of other types begin with their size."""

_SIZED: Final = {b"S", b"A", b"F", b"x"}
_TABLE: Final = "table"
_FIXED: Final = {"octet": 1, "timestamp": 8}


class Reader(Protocol):
    """The part of ``asyncio.StreamReader`` that the client uses."""

    async def readexactly(self, n: int) -> bytes:
        """Return so many bytes."""

    async def read(self, n: int = -1) -> bytes:
        """Return up to so many bytes, or all that come."""

    def at_eof(self) -> bool:
        """Whether the stream has ended."""


class ReadableFrames:
    """A stream of frames, all of which the client can read.

    The client reads the first byte of each frame alone, and never a byte of these values elsewhere.
    """

    def __init__(self, reader: Reader) -> None:
        """Read from this stream."""
        self._reader = reader
        self._left = b""
        """What follows of a frame that was read as a whole."""

    async def readexactly(self, n: int) -> bytes:
        """Return the next bytes of a frame."""
        if self._left:
            part, self._left = self._left[:n], self._left[n:]
            return part
        first = await self._reader.readexactly(n)
        if first not in {_METHOD, _HEADER}:
            return first
        start = first + await self._reader.readexactly(_FRAME.size - 1)
        kind, channel, size = _FRAME.unpack(start)
        content = await self._reader.readexactly(size + 1)
        repair = readable_header if first == _HEADER else readable_method
        payload = repair(content[:-1])
        self._left = (_FRAME.pack(kind, channel, len(payload)) + payload + content[-1:])[1:]
        return first

    async def read(self, n: int = -1) -> bytes:
        """Return what comes, unchanged."""
        left, self._left = self._left, b""
        return left or await self._reader.read(n)

    def at_eof(self) -> bool:
        """Whether there is nothing more."""
        return not self._left and self._reader.at_eof()


def readable_method(payload: bytes) -> bytes:
    """Return the payload of a method; in a delivery, question marks replace what is no text."""
    if not payload.startswith(_DELIVER):
        return payload
    exchange_at = len(_DELIVER) + 1 + payload[len(_DELIVER)] + 9  # tags, and whether redelivered
    key_at = exchange_at + 1 + payload[exchange_at]
    exchange, key = payload[exchange_at + 1 : key_at], payload[key_at + 1 :]
    names = b"".join(bytes([len(name)]) + _as_text(name) for name in (exchange, key))
    return payload[:exchange_at] + names


def _as_text(raw: bytes) -> bytes:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("ascii", "replace").replace("\ufffd", "?").encode()
    return raw


def readable_header(payload: bytes) -> bytes:
    """Return the payload of a message's header, without the properties that cannot be read."""
    if _is_readable(payload):
        return payload
    repaired = _repaired(payload)
    return repaired if _is_readable(repaired) else _with(payload, {}, ["all properties"])


def _is_readable(payload: bytes) -> bool:
    if payload[_PROPERTIES_AT - 1] & 1:
        return False  # More flags follow. pamqp reads the first ones again and again, for ever.
    try:
        ContentHeader().unmarshal(payload)
    except Exception:  # noqa: BLE001 - whatever decoding raises
        return False
    return True


def _repaired(payload: bytes) -> bytes:
    flags, rest = int.from_bytes(payload[12:_PROPERTIES_AT]), payload[_PROPERTIES_AT:]
    kept: dict[str, bytes] = {}
    left_out: list[str] = []
    for name in Basic.Properties.__slots__:
        if not flags & Basic.Properties.flags[name]:
            continue
        kind = Basic.Properties.amqp_type(name)
        size = _size(kind, rest)
        raw, rest = rest[:size], rest[size:]
        if kind == _TABLE:
            entries = list(_entries(raw[4:], left_out))
            kept[name] = b"".join(entries)
        elif len(raw) == size and _can_read(kind, raw):
            kept[name] = raw
        else:
            left_out.append(name)
    return _with(payload, kept, left_out)


def _with(payload: bytes, kept: dict[str, bytes], left_out: list[str]) -> bytes:
    """Return the payload with these properties, encoded, and the names of the others."""
    kept = {**kept, "headers": _table(kept.get("headers", b"") + _note(left_out))}
    order = [name for name in Basic.Properties.__slots__ if name in kept]
    flags = sum(Basic.Properties.flags[name] for name in order)
    return payload[:12] + flags.to_bytes(2) + b"".join(kept[name] for name in order)


def _size(kind: str, rest: bytes) -> int:
    """Return how many bytes a property has."""
    if kind in _FIXED:
        return _FIXED[kind]
    return 4 + int.from_bytes(rest[:4]) if kind == _TABLE else 1 + int.from_bytes(rest[:1])


def _entries(rest: bytes, left_out: list[str]) -> Iterator[bytes]:
    """Yield the entries of a table that can be read; the names of the others are appended."""
    while rest:
        value_at = 1 + rest[0]
        kind, value = rest[value_at : value_at + 1], rest[value_at + 1 :]
        name = rest[1:value_at].decode(errors="backslashreplace")
        if kind in _SIZES:
            size = _SIZES[kind]
        elif kind in _SIZED:
            size = 4 + int.from_bytes(value[:4])
        else:
            # Where the value ends, and the next entry begins, is not known.
            left_out.append(f"headers from {name} on")
            return
        end = value_at + 1 + size
        if end <= len(rest) and _can_read(_TABLE, _table(rest[:end])):
            yield rest[:end]
        else:
            left_out.append(f"header {name}")
        rest = rest[end:]


def _can_read(kind: str, raw: bytes) -> bool:
    try:
        decode.by_type(raw, kind)
    except Exception:  # noqa: BLE001 - whatever decoding raises
        return False
    return True


def _note(left_out: list[str]) -> bytes:
    name, text = UNREADABLE_HEADER.encode(), ", ".join(left_out).encode()
    return bytes([len(name)]) + name + b"S" + _table(text)


def _table(entries: bytes) -> bytes:
    """Return bytes after their size."""
    return len(entries).to_bytes(4) + entries


class BrokerConnection(aio_pika.Connection):
    """A connection that only its owner closes, and that no message breaks."""

    def __init__(self, url: Any, **options: Any) -> None:  # noqa: ANN401 - the client's
        """Take what ``aio_pika.connect`` passes."""
        super().__init__(url, **options)
        is_over_tls = self.url.scheme == "amqps"
        factory = TLSTransportFactory() if is_over_tls else TCPTransportFactory()
        self.kwargs["transport_factory"] = _ReadableTransport(factory)

    def __del__(self) -> None:
        """Do nothing: the client's method starts a task, and Python may call it in any thread."""


class _ReadableTransport(TransportFactory):
    """Opens a transport that repairs frames which the client cannot read."""

    def __init__(self, factory: TransportFactory) -> None:
        self._factory = factory

    async def create(
        self,
        url: Any,  # noqa: ANN401 - the client's
        **kwargs: Any,  # noqa: ANN401 - the client's
    ) -> tuple[StreamReader, StreamWriter]:
        reader, writer = await self._factory.create(url, **kwargs)
        return cast("StreamReader", ReadableFrames(reader)), writer

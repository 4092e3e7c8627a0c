"""Encodes an event as an AMQP message: partition key, ids, properties and body.

The bytes are equal to those of Azure's client, which takes ten times as long.
"""

import struct
from collections.abc import Mapping
from typing import Final

from eventproc._base.amqp import BINARY, SYMBOL, TEXT, encode_bytes, encode_items
from eventproc.models import PropertyValue

_TINY_MIN, _TINY_MAX = -(2**7), 2**7 - 1
_INT_MAX: Final = 2**31 - 1  # the smallest int is ~_INT_MAX
_LONG_MAX: Final = 2**63 - 1
_ULONG_MAX: Final = 2**64 - 1

# Header: durable, and no other field. Annotations: a map whose first key is x-opt-partition-key.
_HEADER: Final = b"\x00\x53\x70\xc0\x07\x05\x56\x01\x40\x40\x40\x40"
_ANNOTATIONS: Final = b"\x00\x53\x72"
_KEY: Final = b"\xa3\x13x-opt-partition-key"
_STANDARD: Final = b"\x00\x53\x73"
_PROPERTIES: Final = b"\x00\x53\x74"
_DATA: Final = b"\x00\x53\x75"

_pack_int: Final = struct.Struct(">Bi").pack
_pack_long: Final = struct.Struct(">Bq").pack
_pack_ulong: Final = struct.Struct(">BQ").pack
_pack_double: Final = struct.Struct(">Bd").pack


def encode_event(
    body: bytes,
    partition_key: str | None,
    properties: Mapping[str, PropertyValue],
    *,
    message_id: str | None = None,
    correlation_id: str | None = None,
    content_type: str | None = None,
) -> bytes:
    """Return the encoded message.

    Raises:
        ValueError: an integer has more than 64 bits, or a text is not valid Unicode.
    """
    parts = []
    if partition_key is not None:
        parts += [_HEADER, _ANNOTATIONS, _map([_KEY, _text(partition_key)])]
    if (message_id, correlation_id, content_type) != (None, None, None):
        parts += [_STANDARD, _standard(message_id, correlation_id, content_type)]
    if properties:
        entries = []
        for name, value in properties.items():
            entries += [_text(name), _value(value)]
        parts += [_PROPERTIES, _map(entries)]
    parts += [_DATA, encode_bytes(BINARY, body)]
    return b"".join(parts)


def _value(value: PropertyValue) -> bytes:
    match value:
        case None:
            return b"\x40"
        case bool():
            return b"\x56\x01" if value else b"\x56\x00"
        case str():
            return _text(value)
        case int():
            return _integer(value)
        case float():
            return _pack_double(0x82, value)
        case bytes():
            return encode_bytes(BINARY, value)


def _integer(value: int) -> bytes:
    """Encode as ``int`` if it fits, as most publishers do; else as ``long`` or ``ulong``."""
    if _TINY_MIN <= value <= _TINY_MAX:
        return bytes((0x54, value & 0xFF))
    if ~_INT_MAX <= value <= _INT_MAX:
        return _pack_int(0x71, value)
    if ~_LONG_MAX <= value <= _LONG_MAX:
        return _pack_long(0x81, value)
    if _LONG_MAX < value <= _ULONG_MAX:
        return _pack_ulong(0x80, value)
    raise ValueError(f"the integer {value} has more than 64 bits")


def _standard(
    message_id: str | None, correlation_id: str | None, content_type: str | None
) -> bytes:
    """Encode the list of AMQP's own properties up to the content type, which is a symbol."""
    symbol = b"\x40" if content_type is None else encode_bytes(SYMBOL, content_type.encode())
    ids = [b"\x40" if text is None else _text(text) for text in (message_id, correlation_id)]
    items = [ids[0], *[b"\x40"] * 4, ids[1], symbol]
    return encode_items(0xC0, len(items), b"".join(items))


def _text(text: str) -> bytes:
    return encode_bytes(TEXT, text.encode())


def _map(entries: list[bytes]) -> bytes:
    return encode_items(0xC1, len(entries), b"".join(entries))

"""Encodes AMQP 1.0. Pure.

Rule: ``decode(encode(value)) == value``, types included.
"""

import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

from eventproc.emulator._amqp.decoding import CONSTANTS, FIXED, LIST_0, U32, VARIABLE
from eventproc.emulator._amqp.values import (
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Value,
)


def encode(value: Value) -> bytes:
    """Encode a value with its constructor, in the shortest form where that is cheap to find."""
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise TypeError(f"AMQP has no type for {type(value).__name__}")
    return writer(value)


def encode_list(elements: list[bytes]) -> bytes:
    """Encode a list of elements that are encoded already."""
    return _compound(0xC0, 0xD0, len(elements), b"".join(elements))


def _compound(small: int, large: int, count: int, body: bytes) -> bytes:
    if len(body) < 0xFF and count <= 0xFF:
        return bytes((small, len(body) + 1, count)) + body
    return bytes((large,)) + U32.pack(len(body) + 4) + U32.pack(count) + body


def _variable(small: int, raw: bytes) -> bytes:
    if len(raw) <= 0xFF:
        return bytes((small, len(raw))) + raw
    return bytes((small + 0x10,)) + U32.pack(len(raw)) + raw


def _encode_map(value: dict[Value, Value]) -> bytes:
    body = b"".join(encode(part) for pair in value.items() for part in pair)
    return _compound(0xC1, 0xD1, 2 * len(value), body)


def _encode_described(value: Described) -> bytes:
    return b"\x00" + encode(value.descriptor) + encode(value.value)


def _encode_array(value: Array) -> bytes:
    constructor = bytes((value.code,))
    bare = list(value)
    if bare and isinstance(bare[0], Described):
        constructor = b"\x00" + encode(bare[0].descriptor) + constructor
        bare = [element.value for element in bare if isinstance(element, Described)]
    body = constructor + b"".join(_encode_element(value.code, element) for element in bare)
    return _compound(0xE0, 0xF0, len(value), body)


def _encode_element(code: int, element: Value) -> bytes:
    """Encode an element of an array, which has one constructor for all elements."""
    if code in CONSTANTS or code == LIST_0:
        return b""
    if code in FIXED:
        raw = element.bytes if isinstance(element, UUID) else element
        raw = ord(raw) if isinstance(raw, Char) else raw
        return FIXED[code][0].pack(raw)
    encoded = encode(element)
    if encoded[0] == code:
        return encoded[1:]
    # The element was encoded in the short form and the array uses the long one, or the reverse.
    if code in VARIABLE:
        assert isinstance(element, str | bytes)
        raw_text = element.encode() if isinstance(element, str) else element
        return U32.pack(len(raw_text)) + raw_text
    size = encoded[1] - 1
    return U32.pack(size + 4) + U32.pack(encoded[2]) + encoded[3:]


def _packer(code: int, layout: str) -> Callable[[Value], bytes]:
    packed = struct.Struct(">B" + layout)
    return lambda value: packed.pack(code, value)


def _uint(value: Value) -> bytes:
    assert isinstance(value, int)
    return bytes((0x52, value)) if 0 < value <= 0xFF else _UINT.pack(0x70, value) if value else b"C"


def _ulong(value: Value) -> bytes:
    assert isinstance(value, int)
    return (
        bytes((0x53, value)) if 0 < value <= 0xFF else _ULONG.pack(0x80, value) if value else b"D"
    )


_UINT: Final = struct.Struct(">BI")
_ULONG: Final = struct.Struct(">BQ")
_DECIMALS: Final = {4: b"\x74", 8: b"\x84", 16: b"\x94"}
_WRITERS: Final[dict[type, Callable[..., bytes]]] = {
    type(None): lambda _: b"\x40",
    bool: lambda value: b"\x41" if value else b"\x42",
    UByte: _packer(0x50, "B"),
    UShort: _packer(0x60, "H"),
    UInt: _uint,
    ULong: _ulong,
    Byte: _packer(0x51, "b"),
    Short: _packer(0x61, "h"),
    Int: _packer(0x71, "i"),
    Long: _packer(0x81, "q"),
    int: _packer(0x81, "q"),
    Float: _packer(0x72, "f"),
    float: _packer(0x82, "d"),
    Char: lambda value: _UINT.pack(0x73, ord(value)),
    Timestamp: _packer(0x83, "q"),
    UUID: lambda value: b"\x98" + value.bytes,
    Decimal: lambda value: _DECIMALS[len(value)] + value,
    bytes: lambda value: _variable(0xA0, value),
    str: lambda value: _variable(0xA1, value.encode()),
    Symbol: lambda value: _variable(0xA3, value.encode("ascii")),
    list: lambda value: encode_list([encode(element) for element in value]),
    dict: _encode_map,
    Array: _encode_array,
    Described: _encode_described,
}

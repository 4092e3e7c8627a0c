"""Encodes AMQP 1.0. Pure.

Rule: ``decode(encode(value)) == value``, types included.
"""

import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

from eventproc._base.amqp import (
    BINARY,
    CONSTANTS,
    EMPTY_LIST,
    FORMS,
    SYMBOL,
    TEXT,
    encode_bytes,
    encode_items,
)
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
    return encode_items(0xC0, len(elements), b"".join(elements))


def _encode_map(value: dict[Value, Value]) -> bytes:
    body = b"".join(encode(part) for pair in value.items() for part in pair)
    return encode_items(0xC1, 2 * len(value), body)


def _encode_described(value: Described) -> bytes:
    return b"\x00" + encode(value.descriptor) + encode(value.value)


def _encode_array(value: Array) -> bytes:
    constructor = bytes((value.code,))
    bare = list(value)
    if bare and isinstance(bare[0], Described):
        constructor = b"\x00" + encode(bare[0].descriptor) + constructor
        bare = [element.value for element in bare if isinstance(element, Described)]
    body = constructor + b"".join(_encode_element(value.code, element) for element in bare)
    return encode_items(0xE0, len(value), body)


def _encode_element(code: int, element: Value) -> bytes:
    """Encode an element of an array, which has one constructor for all elements."""
    if code in CONSTANTS or code == EMPTY_LIST:
        return b""
    encoded = encode(element)
    if encoded[0] == code:
        return encoded[1:]
    if code in FORMS:  # The short form of a number was encoded, and the array uses the long one.
        return struct.pack(FORMS[code], element)
    # Or the short form of a text, list, map or array.
    if code >> 4 == _LARGE_BYTES:
        return _U32.pack(encoded[1]) + encoded[2:]
    return _U32.pack(encoded[1] + 3) + _U32.pack(encoded[2]) + encoded[3:]


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


_LARGE_BYTES: Final = 0xB
_U32: Final = struct.Struct(">I")
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
    Char: lambda value: b"\x73" + value.encode("utf-32-be"),
    Timestamp: _packer(0x83, "q"),
    UUID: lambda value: b"\x98" + value.bytes,
    Decimal: lambda value: _DECIMALS[len(value)] + value,
    bytes: lambda value: encode_bytes(BINARY, value),
    str: lambda value: encode_bytes(TEXT, value.encode()),
    Symbol: lambda value: encode_bytes(SYMBOL, value.encode("ascii")),
    list: lambda value: encode_list([encode(element) for element in value]),
    dict: _encode_map,
    Array: _encode_array,
    Described: _encode_described,
}

"""Decodes AMQP 1.0. Pure.

Rule: any input gives a value or ``MalformedError``. Decoding never hangs, never allocates more
memory than the size of the input justifies, and never recurses deeper than ``DEPTH_MAX``.

http://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-types-v1.0-os.html
"""

import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

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

DEPTH_MAX: Final = 32
"""Deepest nesting that is decoded. Real messages stay below ten."""

WIDTHLESS_MAX: Final = 0xFFFF
"""Most elements of an array of ``null`` or ``true``, which takes no bytes per element."""

LIST_0: Final = 0x45
U32: Final = struct.Struct(">I")


class MalformedError(Exception):
    """The bytes are not AMQP 1.0. The connection they came on must be closed."""


def decode(buffer: bytes, at: int = 0, depth: int = 0) -> tuple[Value, int]:
    """Decode the value at ``at``; return it and the position after it.

    Raises:
        MalformedError: There is no valid value.
    """
    try:
        code = buffer[at]
        if code == 0:
            _check_depth(depth)
            descriptor, at = decode(buffer, at + 1, depth + 1)
            value, at = decode(buffer, at, depth + 1)
            return Described(descriptor, value), at
        return _decode_as(code, buffer, at + 1, depth)
    except (IndexError, struct.error) as error:
        raise MalformedError("a value is cut short") from error


def skip(buffer: bytes, at: int, depth: int = 0) -> int:
    """Return the position after the value at ``at``, without decoding it.

    The upper half of a constructor byte gives the width of the value, whatever its type.

    Raises:
        MalformedError: The value is cut short.
    """
    try:
        code = buffer[at]
        while not code:  # a descriptor, followed by the described value
            _check_depth(depth)
            depth += 1
            at = skip(buffer, at + 1, depth)
            code = buffer[at]
        width = _WIDTHS[code >> 4]
        if width == _LENGTH_8:
            width = 1 + buffer[at + 1]
        elif width == _LENGTH_32:
            width = 4 + U32.unpack_from(buffer, at + 1)[0]
    except (IndexError, struct.error) as error:
        raise MalformedError("a value is cut short") from error
    except KeyError as error:
        raise MalformedError(f"no type has the constructor 0x{buffer[at]:02x}") from error
    if at + 1 + width > len(buffer):
        raise MalformedError("a value is cut short")
    return at + 1 + width


def _check_depth(depth: int) -> None:
    if depth >= DEPTH_MAX:
        raise MalformedError("nested too deeply")


_LENGTH_8: Final = -1
_LENGTH_32: Final = -2
_WIDTHS: Final = {
    0x4: 0,
    0x5: 1,
    0x6: 2,
    0x7: 4,
    0x8: 8,
    0x9: 16,
    0xA: _LENGTH_8,
    0xB: _LENGTH_32,
    0xC: _LENGTH_8,
    0xD: _LENGTH_32,
    0xE: _LENGTH_8,
    0xF: _LENGTH_32,
}


def _decode_as(code: int, buffer: bytes, at: int, depth: int) -> tuple[Value, int]:
    if code in CONSTANTS:
        return CONSTANTS[code], at
    if code == LIST_0:
        return [], at
    if code in FIXED:
        layout, make = FIXED[code]
        return make(layout.unpack_from(buffer, at)[0]), at + layout.size
    if code in VARIABLE:
        return _decode_variable(code, buffer, at)
    if code in _COMPOUND:
        return _decode_compound(code, buffer, at, depth)
    raise MalformedError(f"no type has the constructor 0x{code:02x}")


def _decode_variable(code: int, buffer: bytes, at: int) -> tuple[Value, int]:
    if code < 0xB0:
        start, end = at + 1, at + 1 + buffer[at]
    else:
        start, end = at + 4, at + 4 + U32.unpack_from(buffer, at)[0]
    if end > len(buffer):
        raise MalformedError("a string is cut short")
    raw = buffer[start:end]
    try:
        return VARIABLE[code](raw), end
    except UnicodeDecodeError as error:
        raise MalformedError("a string is not in its encoding") from error


def _decode_compound(code: int, buffer: bytes, at: int, depth: int) -> tuple[Value, int]:
    _check_depth(depth)
    if code in {0xC0, 0xC1, 0xE0}:
        end, count, at = at + 1 + buffer[at], buffer[at + 1], at + 2
    else:
        end, count, at = (
            at + 4 + U32.unpack_from(buffer, at)[0],
            U32.unpack_from(buffer, at + 4)[0],
            at + 8,
        )
    if end > len(buffer) or at > end:
        raise MalformedError("a compound is cut short")
    if code in {0xE0, 0xF0}:
        value, at = _decode_array(buffer, at, count, depth)
    elif count > end - at:  # even a null takes one byte
        raise MalformedError("a compound declares more elements than it has bytes")
    else:
        elements: list[Value] = []
        for _ in range(count):
            element, at = decode(buffer, at, depth + 1)
            elements.append(element)
        value = elements if code in {0xC0, 0xD0} else _map_of(elements)
    if at != end:
        raise MalformedError("a compound's size is not the size of its elements")
    return value, end


def _decode_array(buffer: bytes, at: int, count: int, depth: int) -> tuple[Value, int]:
    code, at = buffer[at], at + 1
    if code == 0:
        _check_depth(depth)
        descriptor, at = decode(buffer, at, depth + 1)
        inner, at = _decode_array(buffer, at, count, depth + 1)
        assert isinstance(inner, Array)
        return Array(inner.code, [Described(descriptor, element) for element in inner]), at
    if code >> 4 == 0x4 and count > WIDTHLESS_MAX:
        raise MalformedError("an array of elements without width is too long")
    elements: list[Value] = []
    for _ in range(count):
        element, at = _decode_as(code, buffer, at, depth + 1)
        elements.append(element)
    return Array(code, elements), at


def _map_of(elements: list[Value]) -> dict[Value, Value]:
    if len(elements) % 2:
        raise MalformedError("a map has a key without a value")
    try:
        return dict(zip(elements[::2], elements[1::2], strict=True))
    except TypeError as error:
        raise MalformedError("a map has a list or a map as a key") from error


def _char(code_point: int) -> Char:
    try:
        found = Char(chr(code_point))
        found.encode()  # Half of a pair of UTF-16 is none.
    except (ValueError, OverflowError) as error:
        raise MalformedError("a char is not a Unicode character") from error
    return found


def _bool(octet: int) -> bool:
    return octet != 0


CONSTANTS: Final[dict[int, Value]] = {
    0x40: None,
    0x41: True,
    0x42: False,
    0x43: UInt(0),
    0x44: ULong(0),
}
FIXED: Final[dict[int, tuple[struct.Struct, Callable[..., Value]]]] = {
    0x50: (struct.Struct(">B"), UByte),
    0x51: (struct.Struct(">b"), Byte),
    0x52: (struct.Struct(">B"), UInt),
    0x53: (struct.Struct(">B"), ULong),
    0x54: (struct.Struct(">b"), Int),
    0x55: (struct.Struct(">b"), Long),
    0x56: (struct.Struct(">B"), _bool),
    0x60: (struct.Struct(">H"), UShort),
    0x61: (struct.Struct(">h"), Short),
    0x70: (struct.Struct(">I"), UInt),
    0x71: (struct.Struct(">i"), Int),
    0x72: (struct.Struct(">f"), Float),
    0x73: (struct.Struct(">I"), _char),
    0x74: (struct.Struct("4s"), Decimal),
    0x80: (struct.Struct(">Q"), ULong),
    0x81: (struct.Struct(">q"), Long),
    0x82: (struct.Struct(">d"), float),
    0x83: (struct.Struct(">q"), Timestamp),
    0x84: (struct.Struct("8s"), Decimal),
    0x94: (struct.Struct("16s"), Decimal),
    0x98: (struct.Struct("16s"), lambda raw: UUID(bytes=raw)),
}
VARIABLE: Final[dict[int, Callable[[bytes], Value]]] = {
    0xA0: bytes,
    0xA1: lambda raw: str(raw, "utf-8"),
    0xA3: lambda raw: Symbol(raw, "ascii"),
    0xB0: bytes,
    0xB1: lambda raw: str(raw, "utf-8"),
    0xB3: lambda raw: Symbol(raw, "ascii"),
}
_COMPOUND: Final = frozenset({0xC0, 0xC1, 0xD0, 0xD1, 0xE0, 0xF0})

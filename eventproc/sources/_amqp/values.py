"""Decode or skip one AMQP 1.0 value at a given index.

Text, symbols and binary values are all returned as ``bytes``, as by Azure's decoder, so that events
are equal on both receive paths. A described value is returned without its descriptor.

Rule: for any bytes, the only exception is ``MalformedError``, and no value has bytes from behind
the list, map, array or message that it stands in.
"""

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Final
from uuid import UUID

Decoder = Callable[[bytes, int], tuple[object, int]]
"""Takes the bytes and the index after the value's constructor; returns the value and its end."""


BARE_ITEMS_MAX: Final = 1024
"""Most items of an array whose values take no bytes, such as nulls. Without a limit, a message of a
few bytes could exhaust the memory."""


class MalformedError(ValueError):
    """The bytes are not valid AMQP. Never leaves the source."""


def decode(buffer: bytes, at: int) -> tuple[object, int]:
    """Return the value that begins at index *at*, and the index of its end.

    Raises:
        MalformedError: the bytes are not a value, or not a complete one.
    """
    try:
        value, end = _decode(buffer, at)
    except (IndexError, struct.error, TypeError, ValueError, RecursionError) as error:
        # For example: a list as a map key, an invalid character, a thousand nested lists.
        raise MalformedError(f"no AMQP value at byte {at}: {error}") from error
    if end > len(buffer):
        raise MalformedError(f"the value at byte {at} ends at {end}, behind the last byte")
    return value, end


def skip(buffer: bytes, at: int) -> int:
    """Return the index of the end of the value that begins at index *at*.

    Raises:
        MalformedError: the bytes are not a value, or not a complete one.
    """
    try:
        end = _skip(buffer, at)
    except (IndexError, struct.error, RecursionError) as error:
        raise MalformedError(f"no AMQP value at byte {at}: {error}") from error
    if end > len(buffer):
        raise MalformedError(f"the value at byte {at} ends at {end}, behind the last byte")
    return end


_UINT: Final = struct.Struct(">I")

# The upper four bits of a constructor give the number of bytes after it, or the width of the size
# field after it (AMQP 1.0, part 1, section 1.2).
_FIXED_SIZES: Final = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
_BARE: Final = 0x4
_ONE_BYTE_OF_SIZE: Final = frozenset({0xA, 0xC, 0xE})
_FOUR_BYTES_OF_SIZE: Final = frozenset({0xB, 0xD, 0xF})


def _skip(buffer: bytes, at: int) -> int:
    constructor = buffer[at]
    if constructor == 0:
        return _skip(buffer, _skip(buffer, at + 1))
    kind = constructor >> 4
    if kind in _ONE_BYTE_OF_SIZE:
        return at + 2 + buffer[at + 1]
    if kind in _FOUR_BYTES_OF_SIZE:
        return int(at + 5 + _UINT.unpack_from(buffer, at + 1)[0])
    if kind not in _FIXED_SIZES:
        raise MalformedError(f"0x{constructor:02x} at byte {at} begins no AMQP value")
    return at + 1 + _FIXED_SIZES[kind]


def _decode(buffer: bytes, at: int) -> tuple[object, int]:
    return _DECODERS[buffer[at]](buffer, at + 1)


def _constant(value: object, /) -> Decoder:
    return lambda _, at: (value, at)


def _number(form: str) -> Decoder:
    shape = struct.Struct(form)
    unpack, size = shape.unpack_from, shape.size
    return lambda buffer, at: (unpack(buffer, at)[0], at + size)


def _bytes_8(buffer: bytes, at: int) -> tuple[object, int]:
    end = at + 1 + buffer[at]
    return buffer[at + 1 : end], end


def _bytes_32(buffer: bytes, at: int) -> tuple[object, int]:
    end = at + 4 + _UINT.unpack_from(buffer, at)[0]
    return buffer[at + 4 : end], end


def _char(buffer: bytes, at: int) -> tuple[object, int]:
    return buffer[at : at + 4].decode("utf-32-be"), at + 4


def _uuid(buffer: bytes, at: int) -> tuple[object, int]:
    return UUID(bytes=buffer[at : at + 16]), at + 16


def _count_8(buffer: bytes, at: int) -> tuple[int, int, int]:
    return buffer[at + 1], at + 2, at + 1 + buffer[at]


def _count_32(buffer: bytes, at: int) -> tuple[int, int, int]:
    size, count = struct.unpack_from(">II", buffer, at)
    return count, at + 8, at + 4 + size


def _list_of(counted: Callable[[bytes, int], tuple[int, int, int]]) -> Decoder:
    def decode_list(buffer: bytes, at: int) -> tuple[object, int]:
        count, at, end = counted(buffer, at)
        _check(count, at, end, buffer)
        items = []
        for _ in range(count):
            item, at = _decode(buffer, at)
            items.append(item)
        return items, _bounded(at, end)

    return decode_list


def _map_of(counted: Callable[[bytes, int], tuple[int, int, int]]) -> Decoder:
    def decode_map(buffer: bytes, at: int) -> tuple[object, int]:
        count, at, end = counted(buffer, at)
        _check(count, at, end, buffer)
        entries = {}
        for _ in range(count // 2):
            name, at = _decode(buffer, at)
            entries[name], at = _decode(buffer, at)
        return entries, _bounded(at, end)

    return decode_map


def _array_of(counted: Callable[[bytes, int], tuple[int, int, int]]) -> Decoder:
    def decode_array(buffer: bytes, at: int) -> tuple[object, int]:
        count, at, end = counted(buffer, at)
        if not count:
            return [], end
        while buffer[at] == 0:
            at = _skip(buffer, at + 1)
        constructor, at = buffer[at], at + 1
        # Nulls and other bare values take no bytes, so their count has a limit of its own.
        is_bare = constructor >> 4 == _BARE and count <= BARE_ITEMS_MAX
        _check(0 if is_bare else count, at, end, buffer)
        decode_item = _DECODERS[constructor]
        items = []
        for _ in range(count):
            item, at = decode_item(buffer, at)
            items.append(item)
        return items, _bounded(at, end)

    return decode_array


def _check(count: int, at: int, end: int, buffer: bytes) -> None:
    """Refuse a count that the bytes cannot hold, before memory is allocated for it."""
    if end > len(buffer) or count > max(end - at, 0):
        raise MalformedError(f"{count} items cannot stand in the bytes from {at} to {end}")


def _bounded(at: int, end: int) -> int:
    """Return the end of a list, map or array; its items must end there, too."""
    if at != end:
        raise MalformedError(f"items that should end at byte {end} end at {at}")
    return end


def _described(buffer: bytes, at: int) -> tuple[object, int]:
    return _decode(buffer, _skip(buffer, at))


def _unknown(buffer: bytes, at: int) -> tuple[object, int]:
    raise MalformedError(f"0x{buffer[at - 1]:02x} at byte {at - 1} begins no AMQP value")


_DECIMAL_BIAS: Final = 6176
_DECIMAL_EXPONENT_AT: Final = 113
_DECIMAL_SPECIAL_AT: Final = 122
_NAN, _INFINITY, _TOO_LARGE = 0b11111, 0b11110, 0b11000


def _decimal_128(buffer: bytes, at: int) -> tuple[object, int]:
    """Decode IEEE 754 decimal128 with a binary significand, which .NET sends for decimals."""
    bits = int.from_bytes(buffer[at : at + 16])
    sign, special = bits >> 127, (bits >> _DECIMAL_SPECIAL_AT) & 0b11111
    if special == _NAN:
        return Decimal("NaN"), at + 16
    if special == _INFINITY:
        return Decimal("-Infinity" if sign else "Infinity"), at + 16
    if special >= _TOO_LARGE:  # a significand beyond 34 digits counts as zero
        return Decimal(0), at + 16
    exponent = (bits >> _DECIMAL_EXPONENT_AT) & 0x3FFF
    digits = str(bits & ((1 << _DECIMAL_EXPONENT_AT) - 1))
    return Decimal((sign, tuple(map(int, digits)), exponent - _DECIMAL_BIAS)), at + 16


_DECODERS: Final[list[Decoder]] = [_unknown] * 256
for _constructor, _decoder in {
    0x00: _described,
    0x40: _constant(None),
    0x41: lambda _, at: (True, at),
    0x42: lambda _, at: (False, at),
    0x43: _constant(0),
    0x44: _constant(0),
    0x45: lambda _, at: ([], at),
    0x50: _number(">B"),
    0x51: _number(">b"),
    0x52: _number(">B"),
    0x53: _number(">B"),
    0x54: _number(">b"),
    0x55: _number(">b"),
    0x56: _number(">?"),
    0x60: _number(">H"),
    0x61: _number(">h"),
    0x70: _number(">I"),
    0x71: _number(">i"),
    0x72: _number(">f"),
    0x73: _char,
    0x74: _number("4s"),  # decimals of other sizes are returned as bytes
    0x80: _number(">Q"),
    0x81: _number(">q"),
    0x82: _number(">d"),
    0x83: _number(">q"),
    0x84: _number("8s"),
    0x94: _decimal_128,
    0x98: _uuid,
    0xA0: _bytes_8,
    0xA1: _bytes_8,
    0xA3: _bytes_8,
    0xB0: _bytes_32,
    0xB1: _bytes_32,
    0xB3: _bytes_32,
    0xC0: _list_of(_count_8),
    0xC1: _map_of(_count_8),
    0xD0: _list_of(_count_32),
    0xD1: _map_of(_count_32),
    0xE0: _array_of(_count_8),
    0xF0: _array_of(_count_32),
}.items():
    _DECODERS[_constructor] = _decoder

"""The encoding of AMQP 1.0: values, where they end, and the sections of a message. Pure.

Rule: for any bytes, the only exception is ``MalformedError``, and no value has bytes from behind
the list, map, array or message that it stands in. No more memory is allocated than the bytes
justify.

http://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-types-v1.0-os.html
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

BARE_ITEMS_MAX: Final = 1024
"""Most items of an array whose values take no bytes, such as nulls. Without a limit, a message of a
few bytes could exhaust the memory."""

FIXED_SIZES: Final = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
SIZE_WIDTHS: Final = {0xA: 1, 0xB: 4, 0xC: 1, 0xD: 4, 0xE: 1, 0xF: 4}
"""The upper four bits of a constructor give the number of bytes after it, or the width of the size
field after it (part 1, section 1.2)."""

CONSTANTS: Final[Mapping[int, object]] = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0}
EMPTY_LIST: Final = 0x45

FORMS: Final[Mapping[int, str]] = {
    0x50: ">B",
    0x51: ">b",
    0x52: ">B",
    0x53: ">B",
    0x54: ">b",
    0x55: ">b",
    0x56: ">?",
    0x60: ">H",
    0x61: ">h",
    0x70: ">I",
    0x71: ">i",
    0x72: ">f",
    0x73: "4s",
    0x74: "4s",
    0x80: ">Q",
    0x81: ">q",
    0x82: ">d",
    0x83: ">q",
    0x84: "8s",
    0x94: "16s",
    0x98: "16s",
}
"""The values of fixed size, as ``struct`` has them. Characters, decimals and uuids are bytes."""

BINARY, TEXT, SYMBOL = 0xA0, 0xA1, 0xA3
LARGE: Final = 0x10
"""The difference of the constructor of a binary, text or symbol of more than 255 bytes."""

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78
"""The last byte of a section's descriptor (part 3, section 3.2)."""

_SHORT_MAX: Final = 0xFF
_UINT: Final = struct.Struct(">I")
_pack_length: Final = struct.Struct(">BI").pack
_pack_lengths: Final = struct.Struct(">BII").pack


class MalformedError(ValueError):
    """The bytes are not valid AMQP."""


# --- where a value ends --------------------------------------------------------------------------


def skip(buffer: bytes, at: int) -> int:
    """Return the index of the end of the value that begins at index *at*.

    Raises:
        MalformedError: the bytes are not a value, or not a complete one.
    """
    try:
        end = _skip(buffer, at)
    except (IndexError, struct.error, RecursionError) as error:
        raise MalformedError(f"no AMQP value at byte {at}: {error}") from error
    return _within(buffer, at, end)


def _skip(buffer: bytes, at: int) -> int:
    constructor = buffer[at]
    if constructor == 0:
        return _skip(buffer, _skip(buffer, at + 1))
    kind = constructor >> 4
    if kind in FIXED_SIZES:
        return at + 1 + FIXED_SIZES[kind]
    width = SIZE_WIDTHS.get(kind)
    if width is None:
        raise MalformedError(f"0x{constructor:02x} at byte {at} begins no AMQP value")
    if width == 1:
        return at + 2 + buffer[at + 1]
    return int(at + 5 + _UINT.unpack_from(buffer, at + 1)[0])


def _within(buffer: bytes, at: int, end: int) -> int:
    if end > len(buffer):
        raise MalformedError(f"the value at byte {at} ends at {end}, behind the last byte")
    return end


def sections_of(message: bytes) -> Iterable[tuple[int, int, int]]:
    """Yield each section: its descriptor, and the indexes at which its value begins and ends.

    Raises:
        MalformedError: the bytes are not sections of a message.
    """
    at = 0
    while at < len(message):
        if message.startswith(b"\x00\x53", at) and at + 2 < len(message):
            descriptor, begin = message[at + 2], at + 3
        elif message.startswith(b"\x00\x80" + bytes(7), at) and at + 9 < len(message):
            descriptor, begin = message[at + 9], at + 10
        else:
            raise MalformedError(f"no section begins at byte {at} of the message")
        at = skip(message, begin)
        yield descriptor, begin, at


# --- decoding ------------------------------------------------------------------------------------

_Decode = Callable[[bytes, int], tuple[Any, int]]
"""Takes the bytes and the index after the value's constructor; returns the value and its end."""

_Table = list[_Decode]
"""By constructor."""

_Bounds = Callable[[bytes, int], tuple[int, int, int]]
"""Returns how many items a list, map or array has, and the indexes where they begin and end."""

_Described = Callable[[Any, Any], object]
_Array = Callable[[int, list[Any]], object]


def decoder(
    makers: Mapping[int, Callable[[Any], object]],
    described: _Described,
    array: _Array,
) -> Callable[..., tuple[Any, int]]:
    """Return a function that takes bytes and an index, and returns the value there and its end.

    It raises ``MalformedError`` if the bytes are not a value, or not a complete one.

    Args:
        makers: Make a value of what ``CONSTANTS`` and ``FORMS`` give, or of the bytes of a binary,
            text or symbol; by constructor. Those without one stay as they are.
        described: Makes a value of a descriptor and the value that it describes.
        array: Makes a value of an array's constructor and its items.
    """
    table: _Table = [_unknown] * 256
    table[0] = _described(table, described)
    for constructor, constant in CONSTANTS.items():
        make = makers.get(constructor)
        table[constructor] = _constant(make(constant) if make else constant)
    table[EMPTY_LIST] = lambda _, at: ([], at)
    for constructor, form in FORMS.items():
        table[constructor] = _fixed(form, makers.get(constructor))
    for constructor in (BINARY, TEXT, SYMBOL):
        table[constructor] = _sized(_bytes_8, makers.get(constructor))
        table[constructor + LARGE] = _sized(_bytes_32, makers.get(constructor))
    for large, bounds in ((0, _bounds_8), (LARGE, _bounds_32)):
        table[0xC0 + large] = _list(table, bounds)
        table[0xC1 + large] = _map(table, bounds)
        table[0xE0 + large] = _array(table, bounds, described, array)

    def decode(buffer: bytes, at: int = 0) -> tuple[Any, int]:
        try:
            found, end = table[buffer[at]](buffer, at + 1)
        except (IndexError, struct.error, TypeError, ValueError, RecursionError) as error:
            # For example: a list as a map key, an invalid character, a thousand nested lists.
            raise MalformedError(f"no AMQP value at byte {at}: {error}") from error
        return found, _within(buffer, at, end)

    return decode


def _unknown(buffer: bytes, at: int) -> tuple[Any, int]:
    raise MalformedError(f"0x{buffer[at - 1]:02x} at byte {at - 1} begins no AMQP value")


def _constant(value: object) -> _Decode:
    return lambda _, at: (value, at)


def _fixed(form: str, make: Callable[[Any], object] | None) -> _Decode:
    shape = struct.Struct(form)
    unpack, size = shape.unpack_from, shape.size
    if make is None:
        return lambda buffer, at: (unpack(buffer, at)[0], at + size)
    return lambda buffer, at: (make(unpack(buffer, at)[0]), at + size)


def _sized(decode_bytes: _Decode, make: Callable[[Any], object] | None) -> _Decode:
    if make is None:
        return decode_bytes

    def decode_made(buffer: bytes, at: int) -> tuple[Any, int]:
        raw, end = decode_bytes(buffer, at)
        return make(raw), end

    return decode_made


def _bytes_8(buffer: bytes, at: int) -> tuple[Any, int]:
    end = at + 1 + buffer[at]
    return buffer[at + 1 : end], end


def _bytes_32(buffer: bytes, at: int) -> tuple[Any, int]:
    end = at + 4 + _UINT.unpack_from(buffer, at)[0]
    return buffer[at + 4 : end], end


def _bounds_8(buffer: bytes, at: int) -> tuple[int, int, int]:
    return buffer[at + 1], at + 2, at + 1 + buffer[at]


def _bounds_32(buffer: bytes, at: int) -> tuple[int, int, int]:
    size, count = struct.unpack_from(">II", buffer, at)
    return count, at + 8, at + 4 + size


def _described(table: _Table, described: _Described) -> _Decode:
    def decode(buffer: bytes, at: int) -> tuple[Any, int]:
        descriptor, at = table[buffer[at]](buffer, at + 1)
        value, at = table[buffer[at]](buffer, at + 1)
        return described(descriptor, value), at

    return decode


def _list(table: _Table, bounds: _Bounds) -> _Decode:
    def decode(buffer: bytes, at: int) -> tuple[Any, int]:
        count, at, end = bounds(buffer, at)
        _check(count, at, end, buffer)
        items = []
        for _ in range(count):
            item, at = table[buffer[at]](buffer, at + 1)
            items.append(item)
        return items, _bounded(at, end)

    return decode


def _map(table: _Table, bounds: _Bounds) -> _Decode:
    def decode(buffer: bytes, at: int) -> tuple[Any, int]:
        count, at, end = bounds(buffer, at)
        _check(count, at, end, buffer)
        entries = {}
        for _ in range(count // 2):
            name, at = table[buffer[at]](buffer, at + 1)
            entries[name], at = table[buffer[at]](buffer, at + 1)
        return entries, _bounded(at, end)

    return decode


def _array(table: _Table, bounds: _Bounds, described: _Described, array: _Array) -> _Decode:
    def decode(buffer: bytes, at: int) -> tuple[Any, int]:
        count, at, end = bounds(buffer, at)
        if not count:
            return array(buffer[at] if at < end else 0, []), end
        descriptors = []
        while buffer[at] == 0:
            descriptor, at = table[buffer[at + 1]](buffer, at + 2)
            descriptors.append(descriptor)
        constructor, at = buffer[at], at + 1
        # Nulls and other bare values take no bytes, so their count has a limit of its own.
        is_bare = FIXED_SIZES.get(constructor >> 4) == 0 and count <= BARE_ITEMS_MAX
        _check(0 if is_bare else count, at, end, buffer)
        decode_item = table[constructor]
        items = []
        for _ in range(count):
            item, at = decode_item(buffer, at)
            for descriptor in reversed(descriptors):
                item = described(descriptor, item)
            items.append(item)
        return array(constructor, items), _bounded(at, end)

    return decode


def _check(count: int, at: int, end: int, buffer: bytes) -> None:
    """Refuse a count that the bytes cannot hold, before memory is allocated for it."""
    if end > len(buffer) or count > max(end - at, 0):
        raise MalformedError(f"{count} items cannot stand in the bytes from {at} to {end}")


def _bounded(at: int, end: int) -> int:
    """Return the end of a list, map or array; its items must end there, too."""
    if at != end:
        raise MalformedError(f"items that should end at byte {end} end at {at}")
    return end


# --- encoding ------------------------------------------------------------------------------------


def encode_bytes(constructor: int, raw: bytes) -> bytes:
    """Encode a binary, text or symbol, with a length of one byte or of four."""
    if len(raw) <= _SHORT_MAX:
        return bytes((constructor, len(raw))) + raw
    return _pack_length(constructor + LARGE, len(raw)) + raw


def encode_items(constructor: int, count: int, raw: bytes) -> bytes:
    """Encode a list, map or array of encoded items, with sizes of one byte or of four.

    *constructor* is that of the short form.
    """
    if count <= _SHORT_MAX and len(raw) < _SHORT_MAX:
        return bytes((constructor, len(raw) + 1, count)) + raw
    return _pack_lengths(constructor + LARGE, len(raw) + 4, count) + raw

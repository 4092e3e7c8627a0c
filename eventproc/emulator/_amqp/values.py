"""The types of AMQP 1.0 that Python does not have, and how values of all types are decoded. Pure.

``None``, ``bool``, ``float`` (double), ``bytes``, ``str``, ``list``, ``dict`` and ``UUID`` are
used directly. AMQP has several sizes of integers where Python has one, and a message must leave
the log with the sizes that it was sent with: hence the subclasses. Everywhere else they behave as
plain numbers and strings.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from eventproc._base.amqp import SYMBOL, TEXT, decoder


class UByte(int):
    """Unsigned, 8 bits."""

    __slots__ = ()


class UShort(int):
    """Unsigned, 16 bits."""

    __slots__ = ()


class UInt(int):
    """Unsigned, 32 bits."""

    __slots__ = ()


class ULong(int):
    """Unsigned, 64 bits."""

    __slots__ = ()


class Byte(int):
    """Signed, 8 bits."""

    __slots__ = ()


class Short(int):
    """Signed, 16 bits."""

    __slots__ = ()


class Int(int):
    """Signed, 32 bits."""

    __slots__ = ()


class Long(int):
    """Signed, 64 bits. A plain ``int`` is written as this."""

    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970 in UTC, signed, 64 bits."""

    __slots__ = ()


class Float(float):
    """IEEE 754, 32 bits. A plain ``float`` is the 64-bit double."""

    __slots__ = ()


class Char(str):
    """One Unicode character."""

    __slots__ = ()


class Symbol(str):
    """An ASCII name from a constrained domain: keys, conditions, capabilities."""

    __slots__ = ()


class Decimal(bytes):
    """A decimal of 4, 8 or 16 bytes, stored and not interpreted."""

    __slots__ = ()


class Array(list["Value"]):
    """Elements of one type. ``code`` is the constructor that all of them share on the wire."""

    __slots__ = ("code",)

    def __init__(self, code: int, elements: list["Value"]) -> None:
        super().__init__(elements)
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Array) and self.code == other.code and list.__eq__(self, other)

    __hash__ = None  # unhashable, as every list


@dataclass(frozen=True, slots=True)
class Described:
    """A value with a descriptor, which gives its meaning."""

    descriptor: "Value"
    value: "Value"


Value: TypeAlias = (
    bool
    | int
    | float
    | str
    | bytes
    | UUID
    | Described
    | list["Value"]
    | dict["Value", "Value"]
    | None
)
"""Any value of AMQP."""


decode: Final = decoder(
    {
        **dict.fromkeys((0x43, 0x52, 0x70), UInt),
        **dict.fromkeys((0x44, 0x53, 0x80), ULong),
        **dict.fromkeys((0x54, 0x71), Int),
        **dict.fromkeys((0x55, 0x81), Long),
        0x50: UByte,
        0x51: Byte,
        0x60: UShort,
        0x61: Short,
        0x72: Float,
        0x83: Timestamp,
        0x73: lambda raw: Char(raw, "utf-32-be"),
        **dict.fromkeys((0x74, 0x84, 0x94), Decimal),
        0x98: lambda raw: UUID(bytes=raw),
        TEXT: lambda raw: str(raw, "utf-8"),
        SYMBOL: lambda raw: Symbol(raw, "ascii"),
    },
    described=Described,
    array=Array,
)
"""``decode(buffer, at=0)`` returns the value that begins at index *at*, and where it ends."""

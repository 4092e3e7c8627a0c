"""Decode one AMQP 1.0 value to plain Python values.

Text, symbols and binary values are all returned as ``bytes``, as by Azure's decoder, so that events
are equal on both receive paths. A described value is returned without its descriptor.
"""

from decimal import Decimal
from typing import Final
from uuid import UUID

from eventproc._base.amqp import decoder

_DECIMAL_BIAS: Final = 6176
_DECIMAL_EXPONENT_AT: Final = 113
_DECIMAL_SPECIAL_AT: Final = 122
_NAN, _INFINITY, _TOO_LARGE = 0b11111, 0b11110, 0b11000


def _decimal_128(raw: bytes) -> Decimal:
    """Decode IEEE 754 decimal128 with a binary significand, which .NET sends for decimals."""
    bits = int.from_bytes(raw)
    sign, special = bits >> 127, (bits >> _DECIMAL_SPECIAL_AT) & 0b11111
    if special == _NAN:
        return Decimal("NaN")
    if special == _INFINITY:
        return Decimal("-Infinity" if sign else "Infinity")
    if special >= _TOO_LARGE:  # a significand beyond 34 digits counts as zero
        return Decimal(0)
    exponent = (bits >> _DECIMAL_EXPONENT_AT) & 0x3FFF
    digits = str(bits & ((1 << _DECIMAL_EXPONENT_AT) - 1))
    return Decimal((sign, tuple(map(int, digits)), exponent - _DECIMAL_BIAS))


decode: Final = decoder(
    {
        0x73: lambda raw: raw.decode("utf-32-be"),
        0x94: _decimal_128,  # decimals of other sizes are returned as bytes
        0x98: lambda raw: UUID(bytes=raw),
    },
    described=lambda _, value: value,
    array=lambda _, items: items,
)
"""``decode(buffer, at)`` returns the value that begins at index *at*, and the index of its end."""

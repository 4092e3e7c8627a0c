"""Maps partition keys to partitions by the service's own hash.

Azure's buffered producers compute the same hash: Bob Jenkins's lookup3 (``hashlittle2``, public
domain) with both seeds zero, and the two halves folded to a signed 16-bit number.

https://burtleburtle.net/bob/c/lookup3.c
"""

import struct
from functools import lru_cache
from typing import Final

_MASK: Final = 0xFFFFFFFF
_WORDS: Final = struct.Struct("<III")
_BLOCK: Final = 12


@lru_cache(maxsize=65_536)
def partition_of(key: str, partition_count: int) -> int:
    """Return the index of a key's partition, among ``partition_count``."""
    first, second = _hash(key.encode())
    folded = (first ^ second) & 0xFFFF
    signed = folded - 0x10000 if folded & 0x8000 else folded
    # In C the remainder has the sign of the dividend; the service takes its absolute value.
    return abs(signed) % partition_count


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _hash(data: bytes) -> tuple[int, int]:
    a = b = c = (0xDEADBEEF + len(data)) & _MASK
    at = 0
    while len(data) - at > _BLOCK:
        x, y, z = _WORDS.unpack_from(data, at)
        a, b, c = _mixed((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)
        at += _BLOCK
    tail = data[at:]
    if not tail:
        return c, b
    x, y, z = _WORDS.unpack(tail.ljust(_BLOCK, b"\x00"))
    return _finished((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a = (a - c) & _MASK ^ _rotated(c, bits)
        c = (c + b) & _MASK
        a, b, c = b, c, a
    return a, b, c


def _finished(a: int, b: int, c: int) -> tuple[int, int]:
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rotated(b, bits)) & _MASK
        a, b, c = b, c, a
    # Seven rotations of three names leave them one step ahead.
    return b, a

"""Bytes that are read at many indexes at once."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Indexes = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

PADDING: Final = 4096
"""Zero bytes after the data, so that a read that begins inside the data needs no bounds check. No
pattern reads more bytes than this before it checks where the message ends."""

_SIZE_32_BYTES: Final = 4


class Buffer:
    """Bytes, followed by padding."""

    def __init__(self, padded: bytes) -> None:
        """Use bytes that end with ``PADDING`` zero bytes."""
        self.raw: Final = padded
        self._bytes = np.frombuffer(padded, np.uint8)
        self._arrow = pa.py_buffer(padded)

    def items(self, at: Indexes, size: int) -> npt.NDArray[np.void]:
        """Return the *size* bytes at each index."""
        windows = np.ndarray(
            (len(self.raw) - size + 1,), np.dtype((np.void, size)), self.raw, 0, (1,)
        )
        return windows[at]

    def holds(self, expected: bytes, at: Indexes) -> Mask:
        """Return a mask of the indexes at which these bytes are."""
        if len(expected) == 1:
            found: Mask = self._bytes[at] == expected[0]
        else:
            found = self.items(at, len(expected)) == np.void(expected)
        return found

    def numbers(self, form: str, at: Indexes) -> npt.NDArray[Any]:
        """Return the number at each index; *form* is a dtype, such as ``>i8``."""
        dtype = np.dtype(form)
        if dtype.itemsize == 1:
            return self._bytes[at].view(dtype)
        return self.items(at, dtype.itemsize).view(dtype).astype(dtype.newbyteorder("="))

    def sizes(self, width: int, at: Indexes) -> Indexes:
        """Return the size at each index, of 1 or 4 bytes."""
        return self.numbers(">u4" if width == _SIZE_32_BYTES else "u1", at).astype(np.intp)

    def values(self, at: Indexes, sizes: Indexes) -> pa.Array:
        """Return the bytes at each index as a binary array.

        One ``take`` copies them, from an array whose items are in turn a value and the bytes up to
        the next value. So the indexes must rise, and values must not overlap.
        """
        count = len(at)
        edges = np.empty(2 * count + 1, np.int32)
        edges[0] = 0
        edges[1::2] = at
        edges[2::2] = at + sizes
        alternating = pa.Array.from_buffers(
            pa.binary(), 2 * count, [None, pa.py_buffer(edges), self._arrow]
        )
        return alternating.take(pa.array(np.arange(1, 2 * count, 2, dtype=np.int32)))

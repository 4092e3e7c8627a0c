"""Takes Avro files apart into blocks as their bytes arrive, and has fastavro decode the blocks.

So no more of a file is in memory than a download and one block.
https://avro.apache.org/docs/1.12.0/specification/#object-container-files
"""

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any, Final

from eventproc._base.extras import needing
from eventproc.errors import SourceRejectedError

with needing("capture"):
    import fastavro

Record = Mapping[str, Any]
"""An event as a Capture file has it."""

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_VARINT_BYTES_MAX: Final = 10
_FIELDS: Final = frozenset(
    {"SequenceNumber", "Offset", "EnqueuedTimeUtc", "SystemProperties", "Properties", "Body"}
)


class DamagedFileError(SourceRejectedError):
    """A file cannot be read to its end. Its name and the place are in the message."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"Capture file {name} is damaged: {why}. Restore it from a copy; or delete it and read "
            "on without its events, with skips_lost"
        )


class AvroFile:
    """One file, from its first byte to its last."""

    def __init__(self, name: str, byte_count: int) -> None:
        self._name = name
        self._left = byte_count
        self._pending = b""
        self._head = b""
        self.is_empty = True
        """Whether no block has come so far."""

    def feed(self, data: bytes) -> Iterator[Record]:
        """Take the next bytes; return the records of the blocks that they complete, lazily.

        Raises:
            DamagedFileError: the file is none of Capture's, or is cut short; also while the records
                are read.
        """
        self._left -= len(data)
        self._pending += data
        try:
            if not self._head:
                self._take_head()
            at = self._whole_blocks() if self._head else 0
        except _IncompleteError:
            at = 0
        if self._left <= 0 and (at < len(self._pending) or not self._head):
            raise self._damaged("it ends too early" if self._pending else "it has no content")
        blocks, self._pending = self._pending[:at], self._pending[at:]
        self.is_empty &= not blocks
        return self._records(blocks) if blocks else iter(())

    def _take_head(self) -> None:
        """Take magic, metadata and sync marker off the pending bytes."""
        data = self._pending
        if data[: len(_MAGIC)] != _MAGIC[: len(data)]:
            raise self._damaged("it does not begin as Avro does")
        at = len(_MAGIC)
        while True:
            count, at = _long(data, at)
            if count < 0:  # The size of the entries follows.
                count, at = -count, _long(data, at)[1]
            if not count:
                break
            for _ in range(2 * count):
                size, at = _long(data, at)
                if size < 0:
                    raise self._damaged("its head cannot be read")
                at += size
        end = at + _SYNC_BYTES
        if end > len(data):
            raise _IncompleteError
        self._head, self._pending = data[:end], data[end:]
        try:
            schema: Any = fastavro.reader(BytesIO(self._head)).writer_schema
            names = {field["name"] for field in schema["fields"]}
        except Exception as error:
            raise self._damaged(f"its schema cannot be read ({error})") from error
        if lacking := _FIELDS - names:
            raise self._damaged(f"its records lack {', '.join(sorted(lacking))}")

    def _whole_blocks(self) -> int:
        """Return where the last whole block of the pending bytes ends."""
        data, at, sync = self._pending, 0, self._head[-_SYNC_BYTES:]
        try:
            while at < len(data):
                count, begin = _long(data, at)
                size, begin = _long(data, begin)
                end = begin + size + _SYNC_BYTES
                if count < 0 or size < 0 or end > len(data) + max(self._left, 0):
                    raise self._damaged("a block is longer than the file")
                if end > len(data):
                    break
                if data[begin + size : end] != sync:
                    raise self._damaged("a block does not end where it says")
                at = end
        except _IncompleteError:
            pass
        return at

    def _records(self, blocks: bytes) -> Iterator[Record]:
        try:
            yield from fastavro.reader(BytesIO(self._head + blocks))  # type: ignore[misc]
        except Exception as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from error

    def _damaged(self, why: str) -> DamagedFileError:
        return DamagedFileError(self._name, why)


class _IncompleteError(Exception):
    """More bytes are needed."""


def _long(data: bytes, at: int) -> tuple[int, int]:
    """Return an Avro long and where it ends."""
    value = 0
    for shift in range(_VARINT_BYTES_MAX):
        if at + shift >= len(data):
            raise _IncompleteError
        byte = data[at + shift]
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more bytes follow
            return (value >> 1) ^ -(value & 1), at + shift + 1
    raise _IncompleteError

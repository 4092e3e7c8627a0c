"""Reads Avro files as their bytes arrive: fastavro decodes the blocks that are whole.

So no more of a file is in memory than a download and one block. Where blocks end is known by the
sync marker: sixteen random bytes of the file that are its head's last, and follow each block.
https://avro.apache.org/docs/1.12.0/specification/#object-container-files
"""

from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from typing import Any, Final

from eventproc._base.extras import needing
from eventproc.errors import SourceRejectedError
from eventproc.sources.capture._events import FIELDS, CapturedEvents

with needing("capture"):
    import fastavro

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_HEAD_BYTES_MAX: Final = 16 * 1024
"""Heads are looked for in no more than this; Capture's have half a kilobyte."""

_RECORDS_AT_ONCE: Final = 256
"""Most events that are decoded without a pause for other tasks; see ``CapturedEvents``."""


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

    def feed(self, data: bytes) -> Iterator[CapturedEvents]:
        """Take the next bytes, and return the events of the blocks that they complete, lazily.

        Raises:
            DamagedFileError: the file is none of Capture's, or is cut short; after the events of
                blocks that are whole.
        """
        self._left -= len(data)
        self._pending += data
        is_whole = self._left <= 0
        if not self._head and (is_whole or len(self._pending) >= _HEAD_BYTES_MAX):
            self._take_head()
        if self._head:
            marker = self._head[-_SYNC_BYTES:]
            blocks, found, self._pending = self._pending.rpartition(marker)
            if found:
                self.is_empty = False
                yield from self._events(self._head + blocks + marker)
        if is_whole and self._pending:
            raise self._damaged("it ends within a block")

    def _take_head(self) -> None:
        """Take magic, metadata and sync marker off the pending bytes."""
        if not self._pending:
            raise self._damaged("it has no content")
        if not self._pending.startswith(_MAGIC):
            raise self._damaged("it does not begin as Avro does")
        stream = BytesIO(self._pending)
        try:
            schema: Any = fastavro.reader(stream).writer_schema
            names = {field["name"] for field in schema["fields"]}
        except Exception as error:
            raise self._damaged(f"its head with the schema cannot be read ({error})") from error
        if lacking := set(FIELDS) - names:
            raise self._damaged(f"its records lack {', '.join(sorted(lacking))}")
        end = stream.tell()
        self._head, self._pending = self._pending[:end], self._pending[end:]

    def _events(self, content: bytes) -> Iterator[CapturedEvents]:
        try:
            records: Any = fastavro.reader(BytesIO(content))
            while batch := CapturedEvents.of(islice(records, _RECORDS_AT_ONCE)):
                yield batch
        except Exception as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from error

    def _damaged(self, why: str) -> DamagedFileError:
        return DamagedFileError(self._name, why)

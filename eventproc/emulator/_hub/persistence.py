"""Stores a partition's log on disk, so that it survives the process.

Rule 1: a producer is answered only after its events were handed to the operating system, so
acknowledged events survive a SIGKILL. With ``sync`` they are on disk, and survive a loss of power.
Rule 2: a file ends at its first incomplete record. What follows was never acknowledged.
Rule 3: numbers are kept when events expire: the head of the file has the next ones.
Rule 4: one emulator has the lock of its directory; two that append to the same files would corrupt
them.

A file is a head and records. A record is its length, its checksum, sequence number, offset,
enqueued time, length of the message's header, and the message.
"""

import os
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final
from urllib.parse import quote
from zlib import crc32

from eventproc.emulator._amqp.message import StoredEvent
from eventproc.emulator._hub.log import PartitionLog
from eventproc.errors import ConfigurationError

_MAGIC: Final = b"eventproc log 1\n"

_HEAD: Final = struct.Struct(">16sQQqI")

_RECORD: Final = struct.Struct(">II")

_EVENT: Final = struct.Struct(">QQqI")

COMPACT_ABOVE: Final = 16 * 1024 * 1024
"""Bytes of expired events before a file is rewritten, if they are more than the other events."""


class PartitionFile:
    """The file of one partition. Only one process may use it at a time."""

    def __init__(
        self, path: Path, *, sync: bool = False, compact_above: int = COMPACT_ABOVE
    ) -> None:
        self.path = path
        self._sync = sync
        self._compact_above = compact_above
        self._file: IO[bytes] | None = None
        self._size = 0
        self._expired = 0
        self.created_ms = 0

    def load(self, created_ms: int) -> PartitionLog:
        """Read the file, cut off an incomplete end, and open it for appending.

        Raises:
            ConfigurationError: The file is not a log.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        raw = self.path.read_bytes() if self.path.exists() else b""
        if len(raw) < _HEAD.size:  # new, or the process died while it wrote the head
            self.created_ms = created_ms
            log = PartitionLog()
            self._rewrite(log, [])
            return log
        log, self._size = self._read(raw)
        self._open()
        return log

    def _open(self) -> None:
        """Open the file to append after its last complete record."""
        self._file = self.path.open("r+b")
        self._file.truncate(self._size)
        self._file.seek(self._size)

    def _read(self, raw: bytes) -> tuple[PartitionLog, int]:
        magic, sequence_number, offset, self.created_ms, checksum = _HEAD.unpack_from(raw)
        if magic != _MAGIC or checksum != crc32(raw[: _HEAD.size - 4]):
            raise ConfigurationError(f"{self.path}: is not a log of this emulator; move it away")
        log = PartitionLog(sequence_number, offset)
        events = []
        at = _HEAD.size
        while at + _RECORD.size <= len(raw):
            length, checksum = _RECORD.unpack_from(raw, at)
            record = raw[at + _RECORD.size : at + _RECORD.size + length]
            if len(record) < max(length, _EVENT.size) or crc32(record) != checksum:
                break
            sequence, start, enqueued_ms, header = _EVENT.unpack_from(record)
            events.append(StoredEvent(sequence, start, enqueued_ms, record[_EVENT.size :], header))
            at += _RECORD.size + length
        log.append(events)
        return log, at

    def append(self, events: Sequence[StoredEvent]) -> None:
        """Append events; on return they are stored.

        Raises:
            OSError: They could not be written. The file is as it was before.
        """
        assert self._file is not None
        records = b"".join(map(_record, events))
        try:
            self._file.write(records)
            self._flush(self._file)
        except OSError:
            with suppress(OSError):  # its buffer cannot be written either
                self._file.close()
            self._open()
            raise
        self._size += len(records)

    def expired(self, byte_count: int, log: PartitionLog) -> None:
        """Count expired bytes, and rewrite the file when they are the greater part of it.

        Until then a restart reads the expired events again, and the retention drops them again. So
        it does if there is no room for the new file.
        """
        self._expired += byte_count
        if self._expired > max(self._compact_above, log.byte_count):
            with suppress(OSError):
                self.rewrite(log)
            self._expired = 0

    def rewrite(self, log: PartitionLog, *, created_ms: int | None = None) -> None:
        """Rewrite the file with only the events in the log, and perhaps another time of creation.

        Raises:
            OSError: It could not be written. The file is as it was before.
        """
        before = self.created_ms
        self.created_ms = before if created_ms is None else created_ms
        try:
            self._rewrite(log, log.read(0, len(log), log.byte_count))
        except OSError:
            self.created_ms = before
            raise

    def _rewrite(self, log: PartitionLog, events: Sequence[StoredEvent]) -> None:
        """Write a new file next to the old one, then replace the old one."""
        first = events[0] if events else None
        head = _HEAD.pack(
            _MAGIC,
            first.sequence_number if first else log.next_sequence_number,
            first.offset if first else log.next_offset,
            self.created_ms,
            0,
        )[:-4]
        content = b"".join((head, struct.pack(">I", crc32(head)), *map(_record, events)))
        beside = self.path.with_suffix(".new")
        try:
            with beside.open("wb") as file:
                file.write(content)
                self._flush(file)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        self.close()  # Windows replaces no file that is open.
        try:
            beside.replace(self.path)
            self._size = len(content)
        finally:
            self._open()
        if self._sync and os.name == "posix":  # the directory entries must be durable, too
            for folder in (self.path.parent, self.path.parent.parent):
                _sync_folder(folder)
        self._expired = 0

    def _flush(self, file: IO[bytes]) -> None:
        file.flush()
        if self._sync:
            os.fsync(file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def partition_path(directory: Path, hub_name: str, partition_id: str) -> Path:
    """Return the path of a partition's file: one folder for each hub, with its name escaped."""
    return (
        directory / quote(hub_name.casefold(), safe="").replace(".", "%2E") / f"{partition_id}.log"
    )


def _record(event: StoredEvent) -> bytes:
    record = (
        _EVENT.pack(event.sequence_number, event.offset, event.enqueued_ms, event.header_length)
        + event.payload
    )
    return _RECORD.pack(len(record), crc32(record)) + record


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class DirectoryLock:
    """Locks a directory until ``release``. The system releases the lock when the process ends."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = (directory / ".lock").open("ab")
        try:
            _lock(self._file)
        except OSError as error:
            self._file.close()
            raise ConfigurationError(
                f"{directory} is in use by another emulator that is running: stop it, or "
                "choose another directory"
            ) from error

    def release(self) -> None:
        """Release the lock. Repeating is harmless."""
        self._file.close()

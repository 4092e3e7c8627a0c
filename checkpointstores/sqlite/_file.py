"""The database file of the SQLite store: its connection, its clock, its checks and its errors.

All functions run on the store's own thread.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checkpointstores.sqlite._clock import HostClock, StoreClock
from checkpointstores.sqlite._tables import CREATE
from eventproc._base.logs import Logger
from eventproc.errors import (
    ConfigurationError,
    StoreCorruptError,
    StoreReplacedError,
    StoreUnavailableError,
)

APPLICATION_ID: Final = 0x65767072
"""``evpr``: distinguishes files of this store from other programs' databases."""

OPEN_RETRY_S: Final = 0.02
"""Seconds between two attempts to open a file that another process has locked."""

SCHEMA_VERSION: Final = 1
"""``PRAGMA user_version`` of a file that has these tables."""

_CHECKED_TABLES: Final = ("ownership", "member", "checkpoint", "group_record", "clock")
"""Tables that are checked for damage when a file is opened. States are not checked: they may have
gigabytes, and each is read as a whole when its partition starts."""

Identity = tuple[int, int]
"""Device and inode of a file. They differ for another file under the same path."""


def connect(path: Path, *, busy_timeout_s: float) -> sqlite3.Connection:
    """Open the file, and create its tables if it is new.

    Raises:
        ConfigurationError: the path cannot work, or the file belongs to another program.
        StoreCorruptError: the file is damaged or cannot be written.
        StoreUnavailableError: other processes locked the file for longer than the timeout.
    """
    _require_usable(path)
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            return _connect_once(path, busy_timeout_s)
        except sqlite3.Error as error:
            # The change to WAL mode fails at once if another process has a lock, whatever the busy
            # timeout is. That happens to processes that start at the same time.
            is_busy = _primary_code(error) == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= deadline:
                raise as_store_error(error, path) from error
        time.sleep(OPEN_RETRY_S)


def _connect_once(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
    )
    try:
        _configure(connection, path)
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def as_store_error(error: sqlite3.Error, path: Path) -> StoreCorruptError | StoreUnavailableError:
    """Return the error: ``StoreUnavailableError`` if another attempt may succeed."""
    code = _primary_code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return StoreCorruptError(f"{path} is not an SQLite database: give another path")
    if code == sqlite3.SQLITE_CORRUPT:
        return _damaged(path, str(error))
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        return StoreCorruptError(
            f"{path} cannot be opened for writing ({error}): the store needs the right to write "
            "the file and to create files beside it"
        )
    if code == sqlite3.SQLITE_BUSY:
        return StoreUnavailableError(
            f"{path}: {error}: another process has had a lock for too long. If it goes on, end the "
            f"one that is no processor: `fuser -v {path}` lists all that have the file open"
        )
    return StoreUnavailableError(f"{path}: {error}")


def _damaged(path: Path, what: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"{path} is damaged ({what}): stop all processors and restore a backup, or remove "
        "the file to begin without checkpoints"
    )


def identity_of(path: Path) -> Identity:
    """Return the identity of the file that is now at the path.

    Raises:
        StoreReplacedError: there is no file at the path.
        StoreUnavailableError: the file system does not answer.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise _replaced(path, "was deleted or moved") from None
    except OSError as error:
        raise StoreUnavailableError(f"{path}: {error}") from error
    return found.st_dev, found.st_ino


def _replaced(path: Path, what: str) -> StoreReplacedError:
    return StoreReplacedError(
        f"{path} {what} while this process had it open: what is written now is lost, and processes "
        "that start later do not see this one. Stop all processors, put the file back with its "
        "-wal, or a backup, and start them; without it the group begins without checkpoints"
    )


def _primary_code(error: sqlite3.Error) -> int | None:
    """Return the primary result code; ``None`` for errors that Python's module raises itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _require_usable(path: Path) -> None:
    """Refuse paths that SQLite reports without a reason, and a file that it would make anew."""
    if path.is_dir():
        raise ConfigurationError(f"{path} is a directory: give the path of a file in it")
    if not path.parent.is_dir():
        raise ConfigurationError(
            f"the directory {path.parent} does not exist: create it, or give another path"
        )
    # In this order: a process that makes the file now makes its -wal after it.
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() and not path.exists():
        raise StoreCorruptError(
            f"{path} was deleted or moved, but not {wal.name}, a part of it: stop all processors "
            f"and put the file back, or remove {wal.name} to begin without checkpoints"
        )


def _configure(connection: sqlite3.Connection, path: Path) -> None:
    # Read before any write: another program's database must not be changed, not even its mode.
    # In one transaction, so that another process cannot create the tables between two reads.
    connection.execute("BEGIN")
    _require_ours(connection, path)
    connection.execute("ROLLBACK")
    # In WAL mode readers do not wait for the writer, nor the writer for readers.
    if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise ConfigurationError(f"{path} is on a file system that SQLite's WAL mode cannot use")
    # A write that was reported as won must survive a power cut; NORMAL may lose the last writes.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have created the tables while this one waited for the lock.
        if _require_ours(connection, path):
            for statement in CREATE:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a damaged file now; if it were found later, partitions would stop."""
    for table in _CHECKED_TABLES:
        (what,) = connection.execute(f"PRAGMA quick_check({table})").fetchone()
        if what != "ok":
            raise _damaged(path, " ".join(what.split()))


def _require_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether the file is new, and refuse one with other tables than these."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    if application == APPLICATION_ID:
        if version != SCHEMA_VERSION:
            raise ConfigurationError(
                f"{path} was written by another version of eventproc (its tables have version "
                f"{version}, this one knows {SCHEMA_VERSION}): use that version, or another file"
            )
        return False
    tables: int = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables or application or version:
        raise ConfigurationError(
            f"{path} is a database of another program: give a file of its own to the store (for "
            "transactions with tables of yours, let the store make it, and copy them into it)"
        )
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFile:
    """A connection to the file, and its clock. Used by one thread at a time."""

    connection: sqlite3.Connection
    path: Path
    """Absolute, because the program may change its working directory."""

    identity: Identity
    clock: StoreClock

    @contextmanager
    def transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Run a transaction, and check that the file is still at its path.

        Every error of SQLite becomes one of ``eventproc.errors``.
        """
        try:
            self.connection.execute(begin)
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            finally:
                # Not in an ``except``: some errors end the transaction by themselves.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            self.require_in_place()
            raise as_store_error(error, self.path) from error
        # After the transaction: the group does not see a write to a file that was moved away
        # before.
        self.require_in_place()

    def require_in_place(self) -> None:
        """Check that the open file is the one that other processes find at the path.

        Raises:
            StoreReplacedError: the file was deleted, moved or replaced.
        """
        if identity_of(self.path) != self.identity:
            raise _replaced(self.path, "was replaced by another file")


def open_file(path: Path, host_clock: HostClock, *, busy_timeout_s: float, log: Logger) -> OpenFile:
    """Open the file, and start its clock.

    Raises:
        ConfigurationError: the path cannot work, or the file belongs to another program.
        StoreError: the file is damaged or locked.
    """
    is_new = not path.exists()
    connection = connect(path, busy_timeout_s=busy_timeout_s)
    try:
        clock = StoreClock(host_clock)
        file = OpenFile(connection=connection, path=path, identity=identity_of(path), clock=clock)
        # This writes, so a read-only file is refused here and not by the first claim.
        with file.transaction("BEGIN IMMEDIATE") as db:
            is_clock_known = clock.start(db)
    except BaseException:
        connection.close()
        raise
    if is_new:
        log.info("store_created", path=str(path))
    if not is_clock_known:
        log.warning("store_clock_followed", path=str(path))
    return file

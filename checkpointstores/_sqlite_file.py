"""The database file of the SQLite store: its tables, and whether a file can be used at all.

Everything here runs on the store's own thread.
"""

import sqlite3
import time
from pathlib import Path
from typing import Final

from eventproc.errors import ConfigurationError, StoreCorruptError, StoreUnavailableError

APPLICATION_ID: Final = 0x65767072
"""``evpr``: tells our files from other programs' databases."""

OPEN_RETRY_S: Final = 0.02

# States have a table of their own: a row that is updated is rewritten whole, and a position that
# moves must not rewrite megabytes; nor must a listing read past them.
_VERSION_1: Final = """
CREATE TABLE ownership (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    owner_id TEXT,
    etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) WITHOUT ROWID, STRICT;
CREATE TABLE member (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    is_leaving INTEGER NOT NULL,
    hands_over INTEGER NOT NULL,
    weight REAL NOT NULL,
    version TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, owner_id)
) WITHOUT ROWID, STRICT;
CREATE TABLE checkpoint (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    "offset" TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    writer TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) WITHOUT ROWID, STRICT;
CREATE TABLE checkpoint_state (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) STRICT;
"""

# Presence is announced anew by whoever is there.
_VERSION_2: Final = """
DROP TABLE member;
CREATE TABLE member (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    status TEXT NOT NULL,
    hands_over INTEGER NOT NULL,
    weight REAL NOT NULL,
    generation TEXT NOT NULL,
    lease_mode TEXT NOT NULL,
    version TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, owner_id)
) WITHOUT ROWID, STRICT;
"""

# Only where there is something to say. A process of an earlier version that has the file open goes
# on writing checkpoints beside it: the sequence number tells that a row belongs to another one.
_VERSION_3: Final = """
CREATE TABLE checkpoint_delivery (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    delivery_count INTEGER NOT NULL,
    completed TEXT NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) WITHOUT ROWID, STRICT;
"""

# Only where it is not AMQP's. A process of an earlier version goes on writing members beside it.
_VERSION_4: Final = """
CREATE TABLE member_numbering (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    numbering TEXT NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, owner_id)
) WITHOUT ROWID, STRICT;
"""

_VERSIONS: Final = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4)
"""What to do to a file to come to each version from the one before."""

SCHEMA_VERSION: Final = len(_VERSIONS)


def connect(path: Path, *, busy_timeout_s: float) -> sqlite3.Connection:
    """Open the file, create its tables if it is new, and refuse what is not ours.

    Raises:
        ConfigurationError: this path can never work; the message says why.
        StoreCorruptError: the file is damaged.
        StoreUnavailableError: others kept the file locked for longer than the timeout.
    """
    _require_usable(path)
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            return _connect_once(path, busy_timeout_s)
        except sqlite3.Error as error:
            # Changing to WAL does not wait for others' locks, whatever the busy timeout is, and
            # processes that start together meet right there.
            is_busy = _primary_code(error) == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= deadline:
                raise as_open_error(error, path) from error
        time.sleep(OPEN_RETRY_S)


def _connect_once(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None)
    try:
        _configure(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def as_open_error(
    error: sqlite3.Error, path: Path
) -> ConfigurationError | StoreCorruptError | StoreUnavailableError:
    """Say what an error at opening means to the one who gave the path."""
    code = _primary_code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return ConfigurationError(f"{path} is not an SQLite database: give another path")
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        return ConfigurationError(
            f"{path} cannot be opened for writing ({error}): the store needs the right to write "
            "the file and to create files beside it"
        )
    return as_store_error(error, path)


def as_store_error(error: sqlite3.Error, path: Path) -> StoreCorruptError | StoreUnavailableError:
    """Say whether trying again may help."""
    if _primary_code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return StoreCorruptError(
            f"{path} is damaged ({error}): stop all processors and restore a backup, or remove "
            "the file to begin without checkpoints"
        )
    return StoreUnavailableError(f"{path}: {error}")


def _primary_code(error: sqlite3.Error) -> int | None:
    """The result code without its extension; ``None`` for errors of the module itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _require_usable(path: Path) -> None:
    """Say plainly what SQLite would only call "unable to open database file"."""
    if path.is_dir():
        raise ConfigurationError(f"{path} is a directory: give the path of a file in it")
    if not path.parent.is_dir():
        raise ConfigurationError(
            f"the directory {path.parent} does not exist: create it, or give another path"
        )


def _configure(connection: sqlite3.Connection, path: Path) -> None:
    # Reading first: a file that is no database of ours must not be changed, not even its mode.
    # In one transaction, or another process's making of the tables falls between two readings.
    connection.execute("BEGIN")
    _require_ours(connection, path)
    connection.execute("ROLLBACK")
    # Readers never wait for the writer, nor it for them.
    if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise ConfigurationError(f"{path} is on a file system that SQLite's WAL mode cannot use")
    # A write that was reported as won survives a power cut; NORMAL would take back the last ones.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been first while this one waited for the lock.
        version = _require_ours(connection, path)
        for statement in ";".join(_VERSIONS[version:]).split(";"):
            connection.execute(statement)
        if version < SCHEMA_VERSION:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _require_ours(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the tables; 0 for a new file."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    tables: int = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application == APPLICATION_ID and 1 <= version <= SCHEMA_VERSION:
        return version
    if application == APPLICATION_ID:
        raise ConfigurationError(
            f"{path} was written by another version of eventproc (its tables have version "
            f"{version}, this one knows {SCHEMA_VERSION}): use that version, or another file"
        )
    if tables or application or version:
        raise ConfigurationError(
            f"{path} is a database of another program: give a file of its own to the store"
        )
    return 0

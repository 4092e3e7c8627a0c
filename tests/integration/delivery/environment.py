"""The environment of a storm: stores with outages, and wall clocks that are off."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from azure.storage.blob import ContainerClient

from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.tables import TableCheckpointStore
from eventproc.ports import CheckpointStore
from eventproc.testing._azurite import Azurite
from tests.servers.postgres_server import PostgresServer

CONTAINER: Final = "checkpoints"


class Store(Protocol):
    """A real store that can have outages."""

    spec: str
    """The value of ``--store``."""
    env: Mapping[str, str]

    def open(self) -> None:
        """Start the store."""

    def close(self) -> None:
        """Stop it."""

    def begin_outage(self, *, is_silent: bool) -> None:
        """Begin an outage: if the store can do both, silent (no answer) or not (refused)."""

    def end_outage(self) -> None:
        """End the outage."""


class SqliteStore:
    """A file; during an outage it is locked for writers."""

    def __init__(self, folder: Path) -> None:
        """Create nothing yet."""
        self._path = folder / "store.db"
        self.spec = f"sqlite:{self._path}"
        self.env: Mapping[str, str] = {}
        self._lock: sqlite3.Connection | None = None

    def open(self) -> None:
        """Do nothing: the first process creates the file."""

    def close(self) -> None:
        """Release the lock."""
        self.end_outage()

    def begin_outage(self, *, is_silent: bool) -> None:
        """Take the lock of every write, unless a frozen process has it: that is the same."""
        lock = sqlite3.connect(self._path, isolation_level=None, timeout=2)
        try:
            lock.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            lock.close()
        else:
            self._lock = lock

    def end_outage(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.execute("ROLLBACK")
            self._lock.close()
            self._lock = None


class AzuriteStore:
    """Blob storage, which is paused or stopped during an outage."""

    def __init__(self, folder: Path, *, has_tables: bool = False) -> None:
        """Start nothing yet."""
        location = folder / "azurite"
        location.mkdir()
        self._azurite = Azurite(location=location, has_tables=has_tables)
        self.spec = f"blob:{CONTAINER}"
        self.env: Mapping[str, str] = {}

    def open(self) -> None:
        """Start Azurite, with an empty container."""
        self._azurite.start()
        conn_str = self._azurite.connection_string
        self.env = {"EVENTPROC_STORAGE_CONNECTION_STRING": conn_str}
        with ContainerClient.from_connection_string(conn_str, CONTAINER) as client:
            client.create_container()

    def close(self) -> None:
        """Stop it."""
        self._azurite.stop()

    def begin_outage(self, *, is_silent: bool) -> None:
        """Pause or stop Azurite, which has stored all acknowledged writes."""
        if is_silent:
            self._azurite.pause()
        else:
            self._azurite.stop()

    def end_outage(self) -> None:
        """Resume or start Azurite."""
        self._azurite.resume()
        self._azurite.start()


class TablesStore(AzuriteStore):
    """Table storage, with the outages of blob storage."""

    def __init__(self, folder: Path) -> None:
        """Start nothing yet."""
        super().__init__(folder, has_tables=True)
        self.spec = f"tables:{CONTAINER}"

    def open(self) -> None:
        """Start Azurite, with an empty table, too."""
        super().open()
        conn_str = self._azurite.connection_string
        store = TableCheckpointStore.from_connection_string(conn_str, CONTAINER, create_table=True)
        asyncio.run(_create(store))


class PostgresStore:
    """A server, which is frozen, killed or restarted during an outage."""

    def __init__(self, _: Path) -> None:
        """Start nothing yet."""
        self._server = PostgresServer()
        self.spec = "postgres:STORM_DSN"
        self.env: Mapping[str, str] = {}

    def open(self) -> None:
        """Start the server, and create the tables."""
        self._server.start()
        self.env = {"STORM_DSN": self._server.dsn}
        os.environ.update(self.env)  # The checks read the store, too.
        store = PostgresCheckpointStore(self._server.dsn, create_schema=True)
        asyncio.run(_create(store))

    def close(self) -> None:
        """Stop it, and remove its data."""
        self._server.remove()

    def begin_outage(self, *, is_silent: bool) -> None:
        """Freeze or kill the server, which has stored all acknowledged writes."""
        if is_silent:
            self._server.pause()
        else:
            self._server.kill()

    def end_outage(self) -> None:
        """Let it continue, or start it again."""
        self._server.resume()
        self._server.start()


async def _create(store: CheckpointStore) -> None:
    async with store:
        pass


STORES: Final[dict[str, Callable[[Path], Store]]] = {
    "sqlite": SqliteStore,
    "azurite": AzuriteStore,
    "tables": TablesStore,
    "postgres": PostgresStore,
}

# --- wall clocks ---------------------------------------------------------------------------------

_SHIFTED: Final = """
import sys, time
from eventproc._command.entry_point import main

off_s = float(sys.argv.pop(1))
wall, wall_ns = time.time, time.time_ns
time.time = lambda: wall() + off_s
time.time_ns = lambda: wall_ns() + int(off_s * 1e9)
sys.exit(main())
"""
"""Without libfaketime: shifts the wall clock that Python code reads, and no other."""


def libfaketime() -> str | None:
    """Find the library of the Debian package ``faketime``; the command would be in the way of
    signals."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return str(found[0]) if found else None


def shifted(off_s: float) -> tuple[list[str], dict[str, str]]:
    """Return command and environment of an ``eventproc`` whose wall clock is off by *off_s*."""
    # The console script is ready for signals before the longer imports.
    plain = [str(Path(sys.executable).with_name("eventproc"))]
    library = libfaketime()
    if not off_s:
        return plain, {}
    if library is None:
        return [sys.executable, "-c", _SHIFTED, str(off_s)], {}
    preload = " ".join(filter(None, [library, os.environ.get("LD_PRELOAD")]))
    # The monotonic clock is not shifted: the journal has its times.
    env = {"LD_PRELOAD": preload, "FAKETIME": f"{off_s:+.0f}s", "NO_FAKE_STAT": "1"}
    return plain, env | {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}

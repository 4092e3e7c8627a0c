"""An open database file: its connection, its clock, and the check that it is still in place."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from checkpointstores.sqlite.clock import HostClock, StoreClock
from checkpointstores.sqlite.file import (
    Identity,
    as_store_error,
    connect,
    identity_of,
    require_in_place,
)
from eventproc.logs import Logger


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
        """Raise ``StoreReplacedError`` unless the path still leads to this file."""
        require_in_place(self.path, self.identity)


def open_file(path: Path, host_clock: HostClock, *, busy_timeout_s: float, log: Logger) -> OpenFile:
    """Open the file, and start its clock.

    Raises:
        ConfigurationError: the path cannot work, or the file belongs to another program.
        StoreError: the file is damaged or locked.
    """
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
    if not is_clock_known:
        log.warning("store_clock_followed", path=str(path))
    return file

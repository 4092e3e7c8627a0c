"""Transactions of handlers in the SQLite file: their rows and the checkpoint in one commit.

Rule 1: a transaction takes SQLite's write lock when it begins, so it never fails half-way because
another process wrote. While it is open, no other process of the group can write.
Rule 2: waiting for the lock and for the disk happens in a thread; the handler's own statements run
where the handler runs.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TypeVar

from checkpointstores.sqlite import _records as records
from checkpointstores.sqlite._file import OpenFile, as_store_error
from eventproc._base.tasks import to_the_end
from eventproc.errors import StoreError, TransactionsRefusedError
from eventproc.models import CheckpointResult, CheckpointUpdate, ConsumerGroup, WriteOutcome
from eventproc.ports import Transaction, Transactions

T = TypeVar("T")


class SqliteTransaction(Transaction):
    """One transaction on the connection."""

    def __init__(self, file: OpenFile) -> None:
        self.db: sqlite3.Connection = file.connection
        self._file = file

    @property
    def is_broken(self) -> bool:
        """Never: a file has no connection that could be lost."""
        return False

    async def commit(self, group: ConsumerGroup, update: CheckpointUpdate) -> CheckpointResult:
        """Write the checkpoint and commit."""
        return await in_thread(lambda: self._commit(group, update))

    def _commit(self, group: ConsumerGroup, update: CheckpointUpdate) -> CheckpointResult:
        try:
            self.db.set_authorizer(None)
        except sqlite3.ProgrammingError as error:
            raise TransactionsRefusedError(
                "the handler closed the connection, so its rows were rolled back. Leave it open: "
                "the end of the block commits"
            ) from error
        _reset_factories(self.db)
        if not self.db.in_transaction:
            raise TransactionsRefusedError(
                "the transaction was over before the end of its block: its rows so far were rolled "
                "back. Leave out conflict clauses and triggers with ROLLBACK; others undo one "
                "statement only"
            )
        now_us = self._file.clock.advance(self.db)
        result = records.update_checkpoint(self.db, group, update, now_us)
        if result.outcome is not WriteOutcome.WON:
            return result
        try:
            self.db.execute("COMMIT")
        except sqlite3.IntegrityError:
            raise  # A deferred constraint of the handler's tables failed at the commit.
        except sqlite3.Error as error:
            failure = as_store_error(error, self._file.path)
            return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=failure)
        try:
            self._file.require_in_place()
        except StoreError as error:
            return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error)
        return result


class SqliteTransactions(Transactions):
    """One connection for the transactions of one processor, because SQLite has one writer."""

    is_exclusive = True

    def __init__(self, open_file: Callable[[], OpenFile]) -> None:
        """*open_file* opens another connection to the file; it blocks."""
        self._open_file = open_file
        self._file: OpenFile | None = None
        self._turn = asyncio.Lock()  # Renewed by ``open``: it belongs to a loop.

    async def open(self) -> None:
        """Open nothing: the file is opened for the first transaction."""
        self._turn, self._file = asyncio.Lock(), None

    async def close(self) -> None:
        async with self._turn:
            file, self._file = self._file, None
            if file is not None:
                await in_thread(file.connection.close)

    @asynccontextmanager
    async def begin(
        self, *, is_blocking: bool, idle_max: timedelta
    ) -> AsyncIterator[SqliteTransaction]:
        del is_blocking, idle_max  # SQLite has one kind of connection, and no server.
        async with self._turn:
            opened: list[OpenFile] = []
            is_good = False
            try:
                yield SqliteTransaction(await in_thread(partial(self._begun, opened)))
                is_good = True
            finally:  # Also if a cancellation came while the transaction began.
                for file in opened:
                    is_usable = await in_thread(partial(_roll_back, file.connection))
                    # Not kept: after an error, for tasks of the block may go on and use it; after
                    # a block that outlived a stop and a new start.
                    if not (is_good and is_usable) or file is not self._file:
                        self._file = None if file is self._file else self._file
                        await in_thread(file.connection.close)

    def _begun(self, opened: list[OpenFile]) -> OpenFile:
        file = self._file = self._file or self._open_file()
        opened.append(file)
        file.connection.set_authorizer(None)
        try:
            file.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise as_store_error(error, file.path) from error
        file.connection.set_authorizer(_authorize)
        return file


def _authorize(action: int, *_: object) -> int:
    """Refuse a handler's COMMIT and ROLLBACK, which would store its rows without their position."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_TRANSACTION else sqlite3.SQLITE_OK


def _reset_factories(db: sqlite3.Connection) -> None:
    """Undo what a handler set: the store reads tuples with text."""
    db.row_factory, db.text_factory = None, str


def _roll_back(db: sqlite3.Connection) -> bool:
    """Roll back unless it was committed, and refuse statements from now on.

    Return whether the connection can be used again.
    """
    try:
        db.set_authorizer(None)
        if db.in_transaction:
            db.execute("ROLLBACK")
        db.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
    except sqlite3.Error:
        return False
    return True


async def in_thread(call: Callable[[], T]) -> T:
    """Run *call* in a thread, and wait until it has ended even if this task is cancelled."""
    return await to_the_end(asyncio.ensure_future(asyncio.to_thread(call)))

"""Transactions of handlers in PostgreSQL: their rows and the checkpoint in one commit.

Rule 1: the checkpoint is written last, and sent together with the COMMIT. So a process that is
suspended in its handler never holds the lock of that row.
Rule 2: the statement that writes the checkpoint fails unless it wrote the row, and then the server
skips the COMMIT that follows.
Rule 3: a connection on which a call failed or was interrupted is closed, not used again.
Rule 4: a handler cannot commit or roll back on its connection: rows that are committed without
their position would be written again after a crash.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NoReturn, Self, TypeVar

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection, ClientCursor, Connection
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from checkpointstores._fields import new_name
from checkpointstores.postgres._records import Records, written_checkpoint
from checkpointstores.postgres._schema import CHECKPOINT_LOST
from checkpointstores.postgres._session import as_store_error, shut_down
from eventproc._base.tasks import ended
from eventproc.errors import StoreUnavailableError, TransactionsRefusedError
from eventproc.models import CheckpointResult, CheckpointUpdate, ConsumerGroup, WriteOutcome
from eventproc.ports import Transaction, Transactions

Values = Mapping[str, Any]


def _refuse(what: str) -> NoReturn:
    raise TransactionsRefusedError(
        f"{what}() was called on the connection of context.transaction(): the end of the block "
        "commits the rows together with the position, and an error rolls them back. For a part "
        "that may fail alone, use `with db.transaction():`, a savepoint"
    )


class HandlerConnection(AsyncConnection[TupleRow]):
    """The connection of a handler whose methods are coroutines."""

    async def commit(self) -> None:
        """Refuse."""
        _refuse("commit")

    async def rollback(self) -> None:
        """Refuse."""
        _refuse("rollback")


class BlockingHandlerConnection(Connection[TupleRow]):
    """The connection of a handler whose methods are ordinary functions."""

    def commit(self) -> None:
        """Refuse."""
        _refuse("commit")

    def rollback(self) -> None:
        """Refuse."""
        _refuse("rollback")


class HandlerSession(ABC):
    """A handler's connection, which can send several statements in one message."""

    db: HandlerConnection | BlockingHandlerConnection

    idle_ms: int | None = None
    """The ``idle_in_transaction_session_timeout`` that was last set, in milliseconds."""

    @classmethod
    @abstractmethod
    async def connect(cls, dsn: str) -> Self:
        """Connect."""

    @abstractmethod
    async def run(self, statement: bytes, values: Values | None = None) -> TupleRow | None:
        """Run statements, separated by semicolons, which are sent in one message.

        Each runs only if those before succeeded. Returns the row of the first one, if it has any.
        The values become literals: a message with parameters can have one statement only.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close; the server rolls back an open transaction."""


class AsyncHandlerSession(HandlerSession):
    """The session of a handler whose methods are coroutines."""

    def __init__(self, db: HandlerConnection) -> None:
        self.db: HandlerConnection = db

    @classmethod
    async def connect(cls, dsn: str) -> Self:
        return cls(await HandlerConnection.connect(dsn, autocommit=True))

    async def run(self, statement: bytes, values: Values | None = None) -> TupleRow | None:
        cursor = AsyncClientCursor(self.db, row_factory=tuple_row)
        await cursor.execute(statement, values)
        return await cursor.fetchone() if cursor.description else None

    async def close(self) -> None:
        await self.db.close()


class BlockingHandlerSession(HandlerSession):
    """The session of a handler whose methods block; each call here runs in a thread."""

    def __init__(self, db: BlockingHandlerConnection) -> None:
        self.db: BlockingHandlerConnection = db

    @classmethod
    async def connect(cls, dsn: str) -> Self:
        connect = BlockingHandlerConnection.connect
        return cls(await asyncio.to_thread(connect, dsn, autocommit=True))

    async def run(self, statement: bytes, values: Values | None = None) -> TupleRow | None:
        return await asyncio.to_thread(self._run, statement, values)

    def _run(self, statement: bytes, values: Values | None) -> TupleRow | None:
        cursor = ClientCursor(self.db, row_factory=tuple_row)
        cursor.execute(statement, values)
        return cursor.fetchone() if cursor.description else None

    async def close(self) -> None:
        self.db.close()


T = TypeVar("T")


class PostgresTransaction(Transaction):
    """One transaction on one connection."""

    def __init__(
        self, session: HandlerSession, records: Records, *, limit_s: float, place: str
    ) -> None:
        self.db = session.db
        self._session = session
        self._records = records
        self._limit_s = limit_s
        self._place = place

    @property
    def is_broken(self) -> bool:
        """Whether the connection is lost."""
        return bool(self.db.closed)

    @property
    def is_over(self) -> bool:
        """Whether it was committed or rolled back."""
        return self.db.info.transaction_status is TransactionStatus.IDLE

    async def begin(self, idle_max: timedelta) -> None:
        """Begin; raise ``psycopg.Error`` if the connection is lost."""
        idle_ms = round(idle_max.total_seconds() * 1000)
        if self._session.idle_ms != idle_ms:
            setting = f"SET idle_in_transaction_session_timeout = {idle_ms}"
            await self.within_limit(self._session.run(setting.encode()))
            self._session.idle_ms = idle_ms
        await self.within_limit(self._session.run(b"BEGIN"))

    async def commit(self, group: ConsumerGroup, update: CheckpointUpdate) -> CheckpointResult:
        """Write the checkpoint and commit."""
        if self.is_over:
            raise TransactionsRefusedError(
                "a statement in the block of transaction() ended the transaction: its rows are "
                "stored without their position. Leave COMMIT and ROLLBACK out"
            )
        etag = new_name()
        write, values = self._records.checkpoint_in_transaction(group, update, etag)
        try:
            row = await self.within_limit(self._session.run(write + b"; COMMIT", values))
        except psycopg.Error as error:
            if error.sqlstate == CHECKPOINT_LOST:
                return CheckpointResult(outcome=WriteOutcome.LOST)
            if not self.is_broken:
                raise  # A deferred constraint of the handler's tables failed at the commit.
            failure = as_store_error(error, self._place)
            return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=failure)
        assert row is not None, "the statement returns a row"
        stored = written_checkpoint(update, etag, *row)
        return CheckpointResult(outcome=WriteOutcome.WON, checkpoint=stored)

    async def roll_back(self) -> None:
        """Roll back if the transaction is still open."""
        if not self.is_over and not self.is_broken:
            await self.within_limit(self._session.run(b"ROLLBACK"))

    async def within_limit(self, call: Awaitable[T]) -> T:
        """Await *call*; after the timeout or a cancellation, shut the connection down to end it."""
        running = asyncio.ensure_future(call)
        try:
            await asyncio.wait([running], timeout=self._limit_s)
        finally:
            if not running.done():
                shut_down(self.db)
                await ended(running)  # It must not use a closed connection.
        return running.result()


class PostgresTransactions(Transactions):
    """The connections of one processor's handlers; each is kept for the next transaction."""

    def __init__(
        self, dsn: str, records: Records, *, limit: timedelta, connections_max: int, place: str
    ) -> None:
        self._dsn = dsn
        self._records = records
        self._limit_s = limit.total_seconds()
        self._place = place
        self._connections_max = connections_max
        self._slots = asyncio.Semaphore(connections_max)
        """Renewed by ``open``: it belongs to a loop."""

        self._idle: dict[type[HandlerSession], list[HandlerSession]] = {
            AsyncHandlerSession: [],
            BlockingHandlerSession: [],
        }
        self._is_open = False

    async def open(self) -> None:
        self._slots = asyncio.Semaphore(self._connections_max)
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False
        for sessions in self._idle.values():
            while sessions:
                await sessions.pop().close()

    @asynccontextmanager
    async def begin(
        self, *, is_blocking: bool, idle_max: timedelta
    ) -> AsyncIterator[PostgresTransaction]:
        kind = BlockingHandlerSession if is_blocking else AsyncHandlerSession
        async with self._slots:
            session, transaction = await self._begun(kind, idle_max)
            is_good = False
            try:
                try:
                    yield transaction
                except Exception:
                    # The connection is not kept: tasks of the block may go on and use it.
                    await self._roll_back(transaction)
                    raise
                is_good = True
            finally:
                if is_good and transaction.is_over and self._is_open:
                    self._idle[kind].append(session)
                else:
                    await session.close()

    async def _roll_back(self, transaction: PostgresTransaction) -> None:
        try:
            await transaction.roll_back()
        except psycopg.Error:
            shut_down(transaction.db)  # The handler's own error is the one to report.

    async def _begun(
        self, kind: type[HandlerSession], idle_max: timedelta
    ) -> tuple[HandlerSession, PostgresTransaction]:
        """Begin on an idle connection, or on a new one; close idle connections that were lost."""
        try:
            while self._idle[kind]:
                session = self._idle[kind].pop()
                try:
                    return session, await self._begin_on(session, idle_max)
                except psycopg.Error:
                    await session.close()
            async with asyncio.timeout(self._limit_s):
                session = await kind.connect(self._dsn)
            return session, await self._begin_on(session, idle_max)
        except psycopg.Error as error:
            raise as_store_error(error, self._place) from error
        except TimeoutError:
            raise StoreUnavailableError(f"{self._place} did not answer") from None

    async def _begin_on(self, session: HandlerSession, idle_max: timedelta) -> PostgresTransaction:
        transaction = PostgresTransaction(
            session, self._records, limit_s=self._limit_s, place=self._place
        )
        try:
            await transaction.begin(idle_max)
        except BaseException:
            await session.close()
            raise
        return transaction

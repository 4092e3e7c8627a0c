"""Connections for the transactions of handlers: an asynchronous and a blocking one.

A handler cannot commit or roll back on them: rows that are committed without their position would
be written again after a crash.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NoReturn, Self

from psycopg import AsyncClientCursor, AsyncConnection, ClientCursor, Connection
from psycopg.rows import TupleRow, tuple_row

from eventproc.errors import TransactionsRefusedError

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


class Link(ABC):
    """A connection that can send several statements in one message."""

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


class AsyncLink(Link):
    """The link of a handler whose methods are coroutines."""

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


class BlockingLink(Link):
    """The link of a handler whose methods block; each call here runs in a thread."""

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

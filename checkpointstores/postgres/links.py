"""Connections that handlers get for their transactions: for coroutines, and for ordinary functions.

Each refuses to be committed or closed by the handler: rows without their position would be written
again after a crash.
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
    """The connection of a handler of coroutines."""

    async def commit(self) -> None:
        """Refuse."""
        _refuse("commit")

    async def rollback(self) -> None:
        """Refuse."""
        _refuse("rollback")


class BlockingHandlerConnection(Connection[TupleRow]):
    """The connection of a handler of ordinary functions."""

    def commit(self) -> None:
        """Refuse."""
        _refuse("commit")

    def rollback(self) -> None:
        """Refuse."""
        _refuse("rollback")


class Link(ABC):
    """One connection, on which statements are sent together and answered together."""

    db: HandlerConnection | BlockingHandlerConnection

    idle_ms: int | None = None
    """The longest time without a statement in a transaction, as the server knows it."""

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
        """Close; the server rolls back what is open."""


class AsyncLink(Link):
    """For coroutines."""

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
    """For ordinary functions; its own calls are made in a thread."""

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

"""A fake database: real SQL in memory, with transactions as PostgreSQL's serializable ones."""

import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, Self

from eventproc.testing._rehearsal.fakes import Fake, Stage, wait

PLACEHOLDER: Final = re.compile(r"%s|\$(\d+)")


class SerializationError(Exception):
    """Another transaction was committed since this one began; try it again."""


class Rows(list[Any]):
    """The rows of a query; also as a cursor."""

    async def fetchone(self) -> Any:  # noqa: ANN401 - a row
        """Return the first row, or ``None``."""
        return self[0] if self else None

    async def fetchall(self) -> list[Any]:
        """Return all rows."""
        return self


class Tables:
    """What is committed, shared by all processes."""

    def __init__(self, content: bytes) -> None:
        self.connection = opened(content)
        self.commit_count = 0

    def rows(self) -> list[str]:
        """Return every row of every table, as text."""
        query = "select name from sqlite_master where type = 'table' order by name"
        names = [name for (name,) in self.connection.execute(query)]
        return sorted(
            f"{name} {row}"
            for name in names
            for row in self.connection.execute(f"select * from {name}")  # noqa: S608
        )


class Database(Fake):
    """A database in memory in place of a connection, a pool, or the function that opens one.

        Database("shop:connect", "create table totals (customer primary key, total)")

    It has ``execute``, ``fetch``, ``fetchrow``, ``fetchval``, ``transaction`` and ``acquire``, with
    the placeholders of asyncpg, psycopg and SQLite. SQL is that of SQLite. Outside of a transaction
    each statement is committed. A transaction fails at its end if another one was committed since
    it began.

    Args:
        target: What it replaces: ``module:name``, or the name of a constructor's argument.
        schema: Statements that create the tables.
    """

    def __init__(self, target: str, schema: str) -> None:
        super().__init__(target)
        connection = sqlite3.connect(":memory:")
        connection.executescript(schema)
        self.content = connection.serialize()

    def bind(self, stage: Stage, owner_id: str, original: object) -> object:  # noqa: ARG002
        """Return the connection of one process."""
        if self.target not in stage.tables:
            stage.tables[self.target] = Tables(self.content)
        return _Connection(stage, owner_id, stage.tables[self.target])


class _Connection:
    """A connection, a pool of them, and the function that opens one."""

    def __init__(self, stage: Stage, owner_id: str, tables: Tables) -> None:
        self._stage, self._owner_id, self._tables = stage, owner_id, tables
        self._open: ContextVar[sqlite3.Connection | None] = ContextVar("open", default=None)

    def __call__(self, *_: object, **__: object) -> Self:
        return self

    acquire = connection = __call__

    def __await__(self) -> Generator[Any, Any, Self]:
        yield from ()
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def close(self) -> None:
        """Do nothing."""

    async def execute(self, sql: str, *values: object) -> Rows:
        """Execute one statement; values as one sequence, or each by itself."""
        given: Any = values[0] if values and isinstance(values[0], (tuple, list, dict)) else values
        sql = PLACEHOLDER.sub(lambda found: f"?{found[1] or ''}", sql)
        rows = Rows()

        def carry_out() -> None:
            connection = self._open.get() or self._tables.connection
            before = connection.total_changes
            rows.extend(connection.execute(sql, given))
            changed = connection.total_changes - before
            self._tables.commit_count += bool(changed and connection is self._tables.connection)

        await self._request(sql.split(maxsplit=1)[0].lower(), carry_out)
        return rows

    fetch = execute

    async def fetchrow(self, sql: str, *values: object) -> Any:  # noqa: ANN401 - a row
        """Return the first row, or ``None``."""
        return await (await self.execute(sql, *values)).fetchone()

    async def fetchval(self, sql: str, *values: object) -> Any:  # noqa: ANN401 - any value
        """Return the first value of the first row, or ``None``."""
        row = await self.fetchrow(sql, *values)
        return row[0] if row else None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Commit what the block does at its end, or nothing of it."""
        tables, began = self._tables, self._tables.commit_count
        private = opened(tables.connection.serialize())
        token = self._open.set(private)
        try:
            yield self
        finally:
            self._open.reset(token)

        def commit() -> None:
            if tables.commit_count != began:
                raise SerializationError("another transaction was committed since this one began")
            tables.connection, tables.commit_count = private, began + 1

        if private.total_changes:
            await self._request("commit", commit)

    async def _request(self, name: str, carry_out: Callable[[], None]) -> None:
        await wait(self._stage.steps(self._owner_id, name, carry_out), lambda: None)


def opened(content: bytes) -> sqlite3.Connection:
    """Open a copy of a database; each statement is committed."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(content)
    return connection

"""A fake database: real SQL in memory, with transactions as PostgreSQL's serializable ones."""

import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from contextvars import ContextVar
from typing import Any, Final, Self

from eventproc.testing._rehearsal.fakes import Fake, Stage, wait

PLACEHOLDER: Final = re.compile(r"'[^']*'|%s|\$(\d+)")
"""Also matches text in quotes, where there are none."""


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
        self.content = content
        """A database, as SQLite serializes it; replaced by each change."""

    def rows(self) -> list[str]:
        """Return every row of every table, as text."""
        query = "select name from sqlite_master where type = 'table' order by name"
        with opened(self.content) as connection:
            return sorted(
                f"{name} {row}"
                for (name,) in connection.execute(query)
                for row in connection.execute(f"select * from {name}")  # noqa: S608
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
        with opened(b"") as connection:
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
        sql = PLACEHOLDER.sub(
            lambda found: found[0] if found[0][0] == "'" else f"?{found[1] or ''}", sql
        )
        rows = Rows()

        def carry_out() -> None:
            private = self._open.get()
            if private is not None:
                rows.extend(private.execute(sql, given))
                return
            with opened(self._tables.content) as connection:
                rows.extend(connection.execute(sql, given))
                if (content := connection.serialize()) != self._tables.content:
                    self._tables.content = content

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
        tables, began = self._tables, self._tables.content
        with opened(began) as private:
            token = self._open.set(private)
            try:
                yield self
            finally:
                self._open.reset(token)
            content = private.serialize()
            is_changed = content != began or private.total_changes > 0

        def commit() -> None:
            if tables.content is not began:
                raise SerializationError("another transaction was committed since this one began")
            tables.content = content

        if is_changed:
            await self._request("commit", commit)

    async def _request(self, name: str, carry_out: Callable[[], None]) -> None:
        await wait(self._stage.steps(self._owner_id, name, carry_out), lambda: None)


@contextmanager
def opened(content: bytes) -> Iterator[sqlite3.Connection]:
    """Open a copy of a database, or an empty one, for a block; each statement is committed."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        if content:
            connection.deserialize(content)
        yield connection

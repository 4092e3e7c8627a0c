"""One connection to the database, with a reconnect after a failure.

Rule 1: a call ends within the timeout, whatever the server and the network do.
Rule 2: a connection on which a call failed or was interrupted is not used again, because a
statement may still run on it. The server ends that statement after the same timeout.
Rule 3: an error of PostgreSQL leaves this module as one of ``eventproc.errors``, which says whether
to try again.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from eventproc._base.secrets import read_secret
from eventproc._base.tasks import ended, retrieve_outcome
from eventproc.errors import (
    ConfigurationError,
    StoreCorruptError,
    StoreError,
    StoreRejectedError,
    StoreUnavailableError,
)

T = TypeVar("T")

Work: TypeAlias = Callable[[AsyncConnection[Any]], Awaitable[T]]

_DEFAULTS: Final = {
    "application_name": "eventproc",
    "connect_timeout": "5",
    # A server that vanished without closing the connection is noticed within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
}


def checked_dsn(dsn: str) -> str:
    """Return the connection string with our defaults; its own settings stay.

    Instead of the string it may say where that is, as ``read_secret`` takes it.

    Raises:
        ConfigurationError: it is not a connection string. The message leaves the password out.
    """
    dsn = read_secret(dsn)
    if not dsn.strip():
        raise ConfigurationError(
            "the connection string is empty: give postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.Error:  # Its message quotes the string, so it is not passed on.
        raise ConfigurationError(
            "the connection string of PostgreSQL cannot be read: give "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with special characters "
            "percent-encoded, or KEY=VALUE pairs"
        ) from None
    return make_conninfo(**(_DEFAULTS | {k: str(v) for k, v in given.items() if v is not None}))


def place_of(dsn: str) -> str:
    """Return host, port and database of a connection string, for messages."""
    given = conninfo_to_dict(dsn)
    host = given.get("host") or given.get("hostaddr") or "the local socket"
    port, database = given.get("port") or "5432", given.get("dbname") or given.get("user") or ""
    return f"PostgreSQL at {host}:{port}, database {database!r}"


class Session:
    """A connection for short statements, each in a transaction of its own; used by one event loop.

    Calls wait for each other, because a connection runs one statement at a time.
    """

    def __init__(self, dsn: str, *, timeout: timedelta, place: str) -> None:
        """*place* names the database without secrets, for messages."""
        self._dsn = dsn
        self._timeout_s = timeout.total_seconds()
        self._place = place
        self._turn = asyncio.Lock()
        self._connection: AsyncConnection[Any] | None = None
        self.pid: int | None = None
        """The id of the server's process for this connection."""

    async def run(self, work: Work[T]) -> T:
        """Run statements on the connection; connect first if that is needed.

        Raises:
            StoreError: they failed, or it is not known whether they took effect.
        """
        until_s = asyncio.get_running_loop().time() + self._timeout_s
        try:
            async with asyncio.timeout_at(until_s):
                await self._turn.acquire()
        except TimeoutError:
            raise self._timed_out() from None
        try:
            try:
                async with asyncio.timeout_at(until_s):
                    connection = await self._connected()
            except TimeoutError:
                raise self._timed_out() from None
            return await self._limited(connection, work, until_s)
        except psycopg.Error as error:
            raise as_store_error(error, self._place) from error
        finally:
            self._turn.release()

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection, self.pid = self._connection, None, None
        if connection is not None:
            await connection.close()

    async def _connected(self) -> AsyncConnection[Any]:
        if self._connection is None:
            connection = await AsyncConnection.connect(self._dsn, autocommit=True)
            try:
                # A statement that we no longer wait for must not keep locks.
                await connection.execute(f"SET statement_timeout = {self._timeout_s * 1000:.0f}")
            except BaseException:
                shut_down(connection)
                await connection.close()
                raise
            self._connection, self.pid = connection, connection.info.backend_pid
        return self._connection

    async def _limited(self, connection: AsyncConnection[Any], work: Work[T], until_s: float) -> T:
        """Run *work*; after the timeout or a cancellation, shut the connection down to end it."""
        running = asyncio.ensure_future(work(connection))
        running.add_done_callback(retrieve_outcome)
        is_good = False
        try:
            left_s = until_s - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait([running], timeout=max(left_s, 0))
            if not done:
                raise self._timed_out()
            result = running.result()
            is_good = True
            return result
        finally:
            if not is_good:
                shut_down(connection)
                await ended(running)
                await self.close()

    def _timed_out(self) -> StoreUnavailableError:
        return StoreUnavailableError(f"{self._place} did not answer within {self._timeout_s:g} s")


def shut_down(connection: AsyncConnection[Any] | Connection[Any]) -> None:
    """Shut the socket down: calls that wait for it fail at once.

    psycopg's own cancellation would ask the server to cancel the statement, and wait for its
    answer.
    """
    with (
        suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as twin,
    ):
        twin.shutdown(socket.SHUT_RDWR)


_REFUSALS: Final = (
    "authentication",
    "no pg_hba.conf entry",
    "does not exist",
    "permission denied",
    "server does not support SSL",
)
"""Parts of libpq's messages for permanent failures to connect, which have no SQLSTATE."""

_REJECTED: Final = (
    errors.InsufficientPrivilege,
    errors.InvalidPassword,
    errors.InvalidAuthorizationSpecification,
    errors.InvalidCatalogName,
    errors.InvalidSchemaName,
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
)

_CORRUPT: Final = (errors.DataCorrupted, errors.IndexCorrupted)


def as_store_error(error: Exception, place: str) -> StoreError:
    """Return the error: ``StoreUnavailableError`` if another attempt may succeed."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, _CORRUPT):
        return StoreCorruptError(f"{place} is damaged ({text}): restore a backup")
    if isinstance(error, psycopg.DataError):
        return StoreRejectedError(f"{place} cannot store a value: {text}")
    is_refused = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
    if isinstance(error, _REJECTED) or (is_refused and any(part in text for part in _REFUSALS)):
        return StoreRejectedError(
            f"{place} refuses: {text}. Correct the connection string, or the rights of its role; "
            "`eventproc store init` creates the tables"
        )
    return StoreUnavailableError(f"{place}: {text}")

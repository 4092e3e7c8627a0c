"""Converts the errors of PostgreSQL to those of eventproc, which say whether to try again."""

from typing import Final

import psycopg
from psycopg import errors

from eventproc.errors import (
    StoreCorruptError,
    StoreError,
    StoreRejectedError,
    StoreUnavailableError,
)

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

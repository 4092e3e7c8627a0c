"""Which errors of PostgreSQL another attempt may mend."""

import psycopg
import pytest
from psycopg import errors

from checkpointstores.postgres._session import as_store_error
from eventproc.errors import StoreCorruptError, StoreRejectedError, StoreUnavailableError


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.NumericValueOutOfRange("value out of range"), StoreRejectedError),
        (errors.UndefinedTable("no such table"), StoreRejectedError),
        (psycopg.OperationalError("no pg_hba.conf entry for host"), StoreRejectedError),
        (psycopg.OperationalError("connection refused"), StoreUnavailableError),
        (errors.AdminShutdown("terminating connection"), StoreUnavailableError),
        (errors.DataCorrupted("invalid page"), StoreCorruptError),
    ],
)
def test_an_error_says_whether_another_attempt_may_succeed(error, kind):
    """A value that the database does not take is refused each time."""
    found = as_store_error(error, "PostgreSQL at h")

    assert type(found) is kind
    assert str(error) in str(found)

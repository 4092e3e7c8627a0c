"""Each event has its row exactly once, whatever happens to the processes and the server."""

from random import Random

import pytest

from tests.integration.transactions.storm import (
    PostgresDatabase,
    SqliteDatabase,
    run_storm,
)


@pytest.mark.parametrize(
    ("make", "keys"),
    [
        pytest.param(PostgresDatabase, 8, id="postgres, eight keys at once"),
        pytest.param(PostgresDatabase, 1, id="postgres, one key", marks=pytest.mark.long),
        pytest.param(SqliteDatabase, 1, id="sqlite", marks=pytest.mark.long),
    ],
)
def test_each_event_has_one_row_in_a_storm(make, keys, tmp_path):
    """Five processes are killed and frozen for longer than their leases."""
    database = make(tmp_path)
    try:
        assert run_storm(database, tmp_path, events=6_000, keys=keys, rng=Random(1)) == []
    finally:
        database.close()

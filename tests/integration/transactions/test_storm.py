"""Each event has its row exactly once, whatever happens to the processes and the server."""

from random import Random

import pytest

from tests.integration.transactions.storm import (
    KEYS,
    PARTITIONS,
    PostgresDatabase,
    SqliteDatabase,
    run_storm,
    violations,
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
        assert (
            run_storm(
                database, tmp_path, events=6_000, keys=keys, rng=Random(1), say=lambda _: None
            )
            == []
        )
    finally:
        database.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM ledger WHERE id = 5", "missing"),
        (
            "INSERT INTO ledger (partition_id, number, key, owner_id) VALUES ('0', 0, 'k0', 'b')",
            "an event has two rows",
        ),
        ("UPDATE ledger SET number = 99 - number WHERE partition_id = '0'", "not in the order"),
    ],
)
def test_the_check_finds_what_is_wrong(statement, message, tmp_path):
    """A row that is missing, one too many, and rows out of order."""
    database = SqliteDatabase(tmp_path)
    for partition in range(PARTITIONS):
        rows = ", ".join(f"('{partition}', {n}, 'k{n % KEYS}', 'a')" for n in range(100))
        database.query(f"INSERT INTO ledger (partition_id, number, key, owner_id) VALUES {rows}")
    assert violations(database, 100 * PARTITIONS) == []
    database.query("DROP INDEX ledger_once")
    database.query(statement)

    assert any(message in found for found in violations(database, 100 * PARTITIONS))

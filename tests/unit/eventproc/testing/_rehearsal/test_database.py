"""The database of a rehearsal: SQL in memory, which every simulated process shares."""

import sqlite3
from typing import Any

import pytest

from eventproc.testing import Database
from eventproc.testing._rehearsal.database import SerializationError
from tests.unit.eventproc.testing._rehearsal.stage import Stage

DATABASE = Database("shop:connect", "create table totals (name text primary key, total int)")


def connection(stage: Stage) -> Any:
    """What stands for the connection of one process."""
    return DATABASE.bind(stage, "host-1", None)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("insert into totals values ($1, $2)", ("%s off, $1", 3)),
        ("insert into totals values (%s, %s)", ("%s off, $1", 3)),
        ("insert into totals values ('%s off, $1', ?)", (3,)),
    ],
)
async def test_placeholders_are_those_of_three_libraries_and_text_in_quotes_has_none(sql, values):
    """So a statement means what it means in the real database."""
    database = connection(Stage())
    await database.execute(sql, *values)

    assert await database.fetch("select * from totals where name like '%s%'") == [("%s off, $1", 3)]


async def test_each_statement_is_committed_also_one_that_creates_a_table():
    """Every process sees it."""
    stage = Stage()
    await connection(stage).execute("create table more (name)")
    await connection(stage).execute("insert into more values ('a')")

    assert stage.tables["shop:connect"].rows() == ["more ('a',)"]


async def test_a_transaction_sees_its_own_changes_and_fails_after_another_commit():
    """As a serializable one; without a change of its own it has nothing to commit."""
    stage = Stage()
    ours, theirs = connection(stage), connection(stage)
    async with ours.transaction():
        await ours.execute("insert into totals values ('a', 1)")
        seen = len(await ours.fetch("select * from totals")), len(await theirs.fetch("select 1"))
    late = ours.transaction()
    await late.__aenter__()
    await ours.execute("insert into totals values ('b', 1)")
    await theirs.execute("insert into totals values ('c', 1)")
    with pytest.raises(SerializationError):
        await late.__aexit__(None, None, None)
    async with ours.transaction():
        await ours.fetch("select * from totals")
        await theirs.execute("delete from totals where name = 'c'")

    assert seen == (1, 1)
    assert stage.tables["shop:connect"].rows() == ["totals ('a', 1)"]


async def test_no_connection_is_left_open(monkeypatch):
    """Since Python 3.13 each of them is a ResourceWarning."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    stage = Stage()
    database = connection(stage)
    await database.execute("insert into totals values ('a', 1)")
    async with database.transaction():
        await database.execute("delete from totals")
    stage.tables["shop:connect"].rows()

    assert opened
    for each in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            each.total_changes  # noqa: B018

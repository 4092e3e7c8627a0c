"""Which promises a rehearsal has broken, by comparison with one without faults."""

from types import SimpleNamespace
from typing import Any

import pytest

from eventproc.testing import Database, Promise
from eventproc.testing._rehearsal.database import Tables, opened
from eventproc.testing._rehearsal.judgement import Expected, breach_of

TARGET = "shop:connect"
DATABASE = Database(TARGET, "create table lines (amount)")


def tables_with(*amounts: int) -> Tables:
    """The database with a row for each amount."""
    with opened(DATABASE.content) as connection:
        connection.executemany("insert into lines values (?)", [(each,) for each in amounts])
        return Tables(connection.serialize())


@pytest.mark.parametrize(
    ("amounts", "told"),
    [
        ([10, 11], None),
        ([11, 10], None),
        ([10, 11, 11], "has lines (11,), and the fold of the events has nothing instead"),
        ([10], "has nothing instead, and the fold of the events has lines (11,)"),
        ([10, 12], "has lines (12,), and the fold of the events has lines (11,)"),
    ],
    ids=["same", "in another order", "one twice", "one missing", "another one"],
)
def test_the_rows_of_a_database_are_those_of_a_run_without_faults(amounts, told):
    """Each of them as often: a row that was inserted twice is one too many."""
    expected = Expected(
        effects={},
        place_by_effect={},
        state_by_partition={},
        rows={TARGET: tables_with(10, 11).rows()},
    )
    ended: Any = SimpleNamespace(
        effects=[],
        key_by_place={},
        tables={TARGET: tables_with(*amounts)},
        state_by_partition=dict,
    )
    breach = breach_of(ended, expected, [Promise.STATE])

    assert (breach and breach.what) == (told and f"the database {TARGET} {told}")

"""The tables of the SQLite store, and how a row keeps the fields of a record."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from checkpointstores._fields import POSITION, PROGRESS, VERSION, Field
from checkpointstores._rows import MEMBER_ROW, OWNERSHIP_ROW, RECORD_ROW, ColumnType, Dialect
from eventproc._base.bounded_json import read_json
from eventproc.models import SequenceRange

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_US: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def instant(microseconds: int) -> datetime:
    """Return the time that is this many microseconds after the beginning of 1970.

    A number that no time has is clamped, so that a damaged record does not make a listing fail.
    """
    return _EPOCH + timedelta(microseconds=min(max(0, microseconds), _LAST_US))


def _as_json(ranges: Iterable[SequenceRange]) -> str:
    return json.dumps([[done.first, done.last] for done in ranges])


def _ranges_in(text: str) -> tuple[SequenceRange, ...]:
    return tuple(SequenceRange(*pair) for pair in read_json(text))


DIALECT: Final = Dialect(
    types={
        str: ColumnType("TEXT"),
        int: ColumnType("INTEGER"),
        float: ColumnType("REAL"),
        bool: ColumnType("INTEGER", read=bool),
        bytes: ColumnType("BLOB"),
        datetime: ColumnType("INTEGER", read=instant),
        tuple: ColumnType("TEXT", write=_as_json, read=_ranges_in),
    },
    parameter=":{}",
    time_column="last_modified_us",
)

CHECKPOINT_ROW: Final = POSITION + PROGRESS + VERSION
STATE_ROW: Final = (
    Field("partition_id", str),
    Field("sequence_number", int),
    Field("state", bytes),
)
"""States have a table of their own: SQLite rewrites a whole row at an update, and a new position
must not rewrite megabytes of state. Listings read no states either."""

CREATE: Final = (
    DIALECT.create("ownership", OWNERSHIP_ROW, "WITHOUT ROWID, STRICT"),
    DIALECT.create("member", MEMBER_ROW, "WITHOUT ROWID, STRICT"),
    DIALECT.create("checkpoint", CHECKPOINT_ROW, "WITHOUT ROWID, STRICT"),
    DIALECT.create("checkpoint_state", STATE_ROW, "STRICT"),
    DIALECT.create("group_record", RECORD_ROW, "STRICT"),
    # The time of the store, in one row.
    """CREATE TABLE clock (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    boot_id TEXT NOT NULL,
    offset_us INTEGER,
    latest_us INTEGER NOT NULL
) STRICT;""",
    "INSERT INTO clock VALUES (0, '', NULL, 0);",
)

"""Rows that no event or checkpoint can be made from are refused, with the column's name."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from eventproc.errors import ConfigurationError
from spark_integration.columns import SCHEMA
from spark_integration.sink.rows import check_rows, rows_of

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def batch(**changes: object) -> pa.RecordBatch:
    """Return three rows of two partitions, with other columns than usual."""
    columns = {
        "body": [b"1"] * 3,
        "partition": ["0", "0", "1"],
        "offset": ["o4", "o5", "o9"],
        "sequenceNumber": [4, 5, 9],
        "enqueuedTime": [NOON] * 3,
    }
    return pa.RecordBatch.from_pydict(columns | changes)


def test_rows_come_in_runs_of_one_partition():
    """Each run knows its numbers and the offset of its last row, which the commit stores."""
    runs = [(p, list(rows.numbers), rows.last_offset) for p, rows in rows_of(batch())]

    assert runs == [("0", [4, 5], "o5"), ("1", [9], "o9")]


def test_rows_can_be_selected():
    """A handler of columns gets only those that are not handled."""
    (_, rows), _ = rows_of(batch())
    left = rows.only([False, True])

    assert (list(left.numbers), left.last_offset) == ([5], "o5")


@pytest.mark.parametrize("column", ["partition", "offset", "sequenceNumber", "enqueuedTime"])
def test_a_row_without_a_value_that_the_sink_needs_is_refused(column):
    """For example after an outer join."""
    lacking = batch(**{column: [None, *batch().column(column).to_pylist()[1:]]})
    with pytest.raises(ConfigurationError, match=f"a row has no {column}"):
        _ = [rows.events() for _, rows in rows_of(lacking)]


@pytest.mark.parametrize("offset", [None, ""])
def test_columns_whose_last_row_has_no_offset_are_refused(offset):
    """Nothing could be committed. The other rows of a handler of columns need none."""
    _, (_, rows) = rows_of(batch(offset=["o4", "o5", offset]))
    with pytest.raises(ConfigurationError, match="a row has no offset"):
        _ = rows.last_offset


def test_an_event_without_a_body_is_empty():
    """Of bytes or text: a query may compute the body."""
    for bodies in ([None, b"a", b"b"], [None, "a", "b"]):
        (_, rows), _ = rows_of(batch(body=bodies))

        assert [event.body for event in rows.events()] == [b"", b"a"]


@pytest.mark.parametrize(("name", "kind"), [("body", LongType()), ("offset", LongType())])
def test_a_column_of_another_type_is_refused_when_the_query_starts(name, kind):
    """Only ``body`` may also be text."""
    others = [field for field in SCHEMA if field.name != name]
    check_rows(StructType([*others, StructField(name, StringType())]))
    with pytest.raises(ConfigurationError, match=f"column '{name}' is of type bigint"):
        check_rows(StructType([*others, StructField(name, kind)]))

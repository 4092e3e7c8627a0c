"""Rows are converted to events; those that no event can be made from are refused."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent
from spark_integration._columns import SCHEMA, to_record_batches
from spark_integration._sink.rows import NEEDED, check_rows, rows_of

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
PLAIN = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text()

EVENTS = st.builds(
    ReceivedEvent,
    body=st.binary(),
    sequence_number=st.integers(0, 2**40),
    offset=st.text(min_size=1),
    enqueued_time=st.integers(0, 2**50).map(lambda us: NOON + timedelta(microseconds=us)),
    partition_key=st.none() | st.text(),
    properties=st.dictionaries(st.text(), PLAIN),
    system_properties=st.dictionaries(st.sampled_from(["x-opt-publisher", "user-id"]), st.text()),
)


@given(st.lists(st.tuples(st.sampled_from("01"), st.lists(EVENTS, max_size=3)), max_size=4))
def test_events_survive_the_conversion_to_rows_and_back(chunks):
    """With all columns, each event is equal to what it was, in its partition."""
    back = [
        (partition_id, event)
        for batch in to_record_batches(SCHEMA, chunks)
        for partition_id, rows in rows_of(batch)
        for event in rows.events()
    ]

    assert back == [(partition_id, event) for partition_id, events in chunks for event in events]


def test_the_needed_columns_are_enough_for_events():
    """Fields whose columns are missing have their defaults."""
    event = ReceivedEvent(body=b"1", sequence_number=4, offset="o", enqueued_time=NOON)
    schema = StructType([field for field in SCHEMA if field.name in NEEDED])
    (batch,) = to_record_batches(schema, [("0", [event])])

    assert [(partition_id, rows.events()) for partition_id, rows in rows_of(batch)] == [
        ("0", [event])
    ]


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
    check_rows(StructType([*others, StructField(name, StringType())]), never)
    with pytest.raises(ConfigurationError, match=f"column '{name}' is of type bigint"):
        check_rows(StructType([*others, StructField(name, kind)]), never)


def never() -> bool:
    """Fail: the handler is not looked at without need."""
    raise AssertionError("asked for the handler")


def with_column(name: str, kind: object) -> StructType:
    return StructType([*(f for f in SCHEMA if f.name != name), StructField(name, kind)])


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (StructType([StructField("body", BinaryType())]), "no column 'partition'"),
        (with_column("total", LongType()), "would not get column 'total'.*process_columns"),
        (with_column("sequenceNumber", StringType()), "needs bigint"),
    ],
)
def test_a_schema_that_cannot_be_events_is_refused(schema, words):
    """``check_rows`` raises when the query starts, and the message names the column."""
    check_rows(with_column("body", StringType()), never)  # A query may compute a body of text.
    with pytest.raises(ConfigurationError, match=words):
        check_rows(schema, lambda: False)


def test_a_handler_of_columns_may_have_further_columns():
    """It gets those that the query has computed, too; the needed ones are checked as ever."""
    check_rows(with_column("total", LongType()), lambda: True)
    with pytest.raises(ConfigurationError, match="no column 'body'"):
        check_rows(StructType([StructField("total", LongType())]), lambda: True)

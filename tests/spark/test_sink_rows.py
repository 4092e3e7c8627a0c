"""Conversion of rows back to events. Needs pyarrow, but no session."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent
from spark_integration.columns import SCHEMA, to_record_batches
from spark_integration.sink.rows import NEEDED, check_rows, rows_of

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


def with_column(name: str, kind: object) -> StructType:
    return StructType([*(f for f in SCHEMA if f.name != name), StructField(name, kind)])


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (StructType([StructField("body", BinaryType())]), "no column 'partition'"),
        (with_column("total", LongType()), "cannot use column 'total'"),
        (with_column("sequenceNumber", StringType()), "needs bigint"),
    ],
)
def test_schemas_that_cannot_be_events_are_refused(schema, words):
    """``check_rows`` raises when the query starts, and the message names the column."""
    check_rows(with_column("body", StringType()))  # A body that a query computed may be text.
    with pytest.raises(ConfigurationError, match=words):
        check_rows(schema)

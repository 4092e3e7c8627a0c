"""Rows become events; columns and values that no event can have are refused."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from eventproc.errors import ConfigurationError, EventRefusedError
from eventproc.models import OutgoingEvent, ReceivedEvent
from spark_integration._columns import SCHEMA, to_record_batches
from spark_integration._publish.properties import PropertyValues, from_json
from spark_integration._publish.rows import check_columns, events_of

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
TEXTS = pa.map_(pa.string(), pa.string())
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
)
RECEIVED = st.builds(
    ReceivedEvent,
    body=st.binary(),
    sequence_number=st.just(0),
    offset=st.just("0"),
    enqueued_time=st.just(NOON),
    partition_key=st.none() | st.text(),
    properties=st.dictionaries(st.text(), VALUES),
)


def columns(*names: str) -> StructType:
    return StructType([one for one in SCHEMA if one.name in names])


@given(st.lists(RECEIVED, max_size=3))
def test_rows_of_the_source_become_the_events_that_they_were_made_of(received):
    """Each property gets its type back: text, integers, floats, booleans, bytes, null."""
    schema = columns("body", "partition", "partitionKey", "properties")
    check_columns(schema)
    events = [
        event
        for batch in to_record_batches(schema, [("7", received)])
        for event in events_of(batch, PropertyValues.JSON)
    ]
    expected = [
        OutgoingEvent(
            body=one.body,
            partition_id="7",
            partition_key=one.partition_key,
            properties=dict(one.properties),
        )
        for one in received
    ]

    assert events == expected
    assert types_of(events) == types_of(expected)


def types_of(events: list[OutgoingEvent]) -> list[list[type]]:
    """Return the types of all values: 1, 1.0 and True are equal in Python."""
    return [[type(value) for value in event.properties.values()] for event in events]


def test_values_that_json_does_not_have_go_out_as_the_source_shows_them():
    """NaN stays a number, a time becomes text, a repeated header a list."""
    assert repr(from_json("NaN")) == "nan"
    assert from_json('"2026-01-31T12:00:00+00:00"') == NOON.isoformat()
    assert from_json('["a", {"base64": "/w=="}, null]') == ["a", b"\xff", None]


def test_bodies_may_be_text_and_other_columns_may_be_left_out():
    """A text goes out as UTF-8, and null stays null: the publisher decides about it."""
    batch = pa.record_batch({"body": pa.array(["é", None], pa.string())})

    assert events_of(batch, PropertyValues.JSON) == [
        OutgoingEvent(body="é".encode()),
        OutgoingEvent(body=None),
    ]


def test_text_values_are_published_as_they_are():
    """With ``propertyValues=text`` nothing is parsed."""
    batch = pa.record_batch(
        {
            "body": pa.array([b"1"], pa.binary()),
            "properties": pa.array([[("city", "Berlin"), ("code", "7"), ("none", None)]], TEXTS),
        }
    )
    (event,) = events_of(batch, PropertyValues.TEXT)

    assert event.properties == {"city": "Berlin", "code": "7", "none": None}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("Berlin", "property 'x' is 'Berlin', which is not JSON.*propertyValues=text"),
        ('{"a": 1}', "a property is text, a number"),
        ("[[1]]", "a property is text, a number"),
        ('{"base64": "not base64"}', "not valid Base64"),
        ('{"base64": "YW*Jj"}', "not valid Base64"),
        ('{"base64": 7}', "not valid Base64"),
    ],
)
def test_a_value_that_no_property_can_have_is_refused_with_its_row(value, words):
    """The index is that of the row in the batch."""
    batch = pa.record_batch(
        {
            "body": pa.array([b"1", b"2"], pa.binary()),
            "properties": pa.array([[], [("x", value)]], TEXTS),
        }
    )
    with pytest.raises(EventRefusedError, match=words) as refused:
        events_of(batch, PropertyValues.JSON)

    assert refused.value.index == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([("value", BinaryType())], "no column 'body'.*they have value"),
        ([("body", LongType())], "'body' is of type bigint.*needs binary or string: cast"),
        (
            [("body", BinaryType()), ("enqueuedTime", StringType())],
            "'enqueuedTime' cannot be published.*drop it",
        ),
        (
            [("body", BinaryType()), ("partition", IntegerType())],
            "'partition' is of type int, and publishing needs string",
        ),
        (
            [("body", BinaryType()), ("properties", MapType(StringType(), LongType()))],
            "needs map<string,string>",
        ),
    ],
)
def test_columns_that_no_event_has_are_refused(fields, words):
    """Before any row is published; the message says what to do."""
    with pytest.raises(ConfigurationError, match=words):
        check_columns(StructType([StructField(name, kind) for name, kind in fields]))


def test_a_map_without_null_values_is_accepted():
    """``create_map`` of literals makes one."""
    values = MapType(StringType(), StringType(), valueContainsNull=False)

    check_columns(
        StructType([StructField("body", StringType()), StructField("properties", values)])
    )

"""Conversion of events to Arrow columns. Needs pyarrow, but no session."""

from datetime import UTC, datetime, timedelta, timezone
from inspect import signature

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from eventproc.models import ReceivedEvent
from spark_integration._columns import BODY_BYTES_MAX, ROWS_MAX, SCHEMA, to_record_batches

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def event(number: int, body: bytes = b"", **fields) -> ReceivedEvent:
    return ReceivedEvent(
        body=body, sequence_number=number, offset=str(number), enqueued_time=NOON, **fields
    )


def table(*chunks: tuple[str, list[ReceivedEvent]], schema: StructType = SCHEMA) -> pa.Table:
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    arrow_schema = to_arrow_schema(schema, **zone)  # before PySpark 4.3 UTC is the default
    return pa.Table.from_batches(to_record_batches(schema, chunks), arrow_schema)


def test_no_events_make_no_arrow_batch():
    """Without events there is no batch, which Spark takes for an empty partition."""
    assert list(to_record_batches(SCHEMA, [])) == []
    assert list(to_record_batches(SCHEMA, [("0", [])])) == []


def test_arrow_batches_are_limited_in_rows_and_bytes():
    """A batch has at most ``ROWS_MAX`` rows and ``BODY_BYTES_MAX`` bytes of bodies."""
    large = [event(number, bytes(BODY_BYTES_MAX // 3)) for number in range(7)]
    small = [event(number) for number in range(ROWS_MAX + 1)]

    assert [b.num_rows for b in to_record_batches(SCHEMA, [("0", large)])] == [3, 3, 1]
    assert [b.num_rows for b in to_record_batches(SCHEMA, [("0", small)])] == [ROWS_MAX, 1]


def test_an_event_larger_than_the_limit_has_its_own_batch():
    """An event above ``BODY_BYTES_MAX`` is alone in a batch."""
    sizes = [1, BODY_BYTES_MAX + 1, 1]
    events = [event(number, bytes(size)) for number, size in enumerate(sizes)]

    assert [b.num_rows for b in to_record_batches(SCHEMA, [("0", events)])] == [1, 1, 1]


def test_only_the_requested_columns_are_made():
    """The columns have the order of the schema."""
    wanted = StructType([SCHEMA["sequenceNumber"], SCHEMA["body"]])

    assert table(("0", [event(4, b"x")]), schema=wanted).to_pylist() == [
        {"sequenceNumber": 4, "body": b"x"}
    ]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(), st.lists, max_leaves=3
)


@given(
    st.lists(
        st.tuples(
            st.binary(max_size=20),
            st.datetimes(datetime(1900, 1, 1), datetime(2999, 1, 1)),  # noqa: DTZ001 - gets a zone below
            st.integers(-12, 12),
            st.none() | st.text(max_size=5),
            st.dictionaries(st.text(max_size=5), values, max_size=3),
        ),
        max_size=5,
    )
)
def test_columns_have_the_values_of_any_event(drawn):
    """Any body, time, key and property is in the row of its event."""
    events = [
        ReceivedEvent(
            body=body,
            sequence_number=number,
            offset=str(number),
            enqueued_time=naive.replace(tzinfo=timezone(timedelta(hours=hours))),
            partition_key=key,
            properties=properties,
            system_properties={"x-opt-publisher": key, "x-opt-offset": "1", "subject": number},
        )
        for number, (body, naive, hours, key, properties) in enumerate(drawn)
    ]
    rows = table(("0", events[:2]), ("1", events[2:])).to_pylist()

    assert [row["partition"] for row in rows] == ["0", "0", "1", "1", "1"][: len(events)]
    for row, sent in zip(rows, events, strict=True):
        assert row["body"] == sent.body
        assert row["enqueuedTime"] == sent.enqueued_time
        assert row["partitionKey"] == row["publisher"] == sent.partition_key
        assert dict(row["properties"]).keys() == sent.properties.keys()
        assert dict(row["systemProperties"]) == {"subject": str(sent.sequence_number)}

"""Received events as columns: each field in its column, and maps as JSON."""

from datetime import UTC, datetime, timedelta

import pytest

from eventproc.columns import COLUMNS, to_columns
from eventproc.columns._schema import PUBLISHER
from eventproc.models import ReceivedEvent

TIME = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def event(number, **fields):
    return ReceivedEvent(
        body=b"%d" % number,
        sequence_number=number,
        offset=f"at {number}",
        enqueued_time=TIME + timedelta(microseconds=number),
        **fields,
    )


EVENTS = [
    event(7, partition_key="k", properties={"a": 1, "b": "1"}),
    event(9),
    event(
        10,
        properties={"c": True},
        system_properties={"x-opt-offset": "at 10", PUBLISHER: "p", "x-other": 2},
    ),
]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("body", [b"7", b"9", b"10"]),
        ("partition", ["3", "3", "3"]),
        ("offset", ["at 7", "at 9", "at 10"]),
        ("sequenceNumber", [7, 9, 10]),
        ("enqueuedTime", [each.enqueued_time for each in EVENTS]),
        ("publisher", [None, None, "p"]),
        ("partitionKey", ["k", None, None]),
        ("properties", [[("a", "1"), ("b", '"1"')], [], [("c", "true")]]),
        ("systemProperties", [[], [], [("x-other", "2")]]),
    ],
)
def test_a_column_has_a_field_of_each_event(name, values):
    """An annotation with a column of its own is not in ``systemProperties``, too."""
    assert to_columns(EVENTS, [name], "3").column(0).to_pylist() == values


def test_columns_are_in_the_order_asked_for_and_have_their_types():
    """Also of no event."""
    names = list(COLUMNS)[::-1]
    for events in (EVENTS, []):
        columns = to_columns(events, names, "3")

        assert columns.schema.names == names
        assert columns.schema.types == [COLUMNS[name] for name in names]
        assert columns.num_rows == len(events)

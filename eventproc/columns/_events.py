"""Converts received events to Arrow columns."""

from collections.abc import Callable, Mapping, Sequence, Sized
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Final, TypeVar

import pyarrow as pa

from eventproc.columns._schema import COLUMNS, PUBLISHER, WITH_OWN_COLUMN, schema_of, to_json
from eventproc.models import EventBatch, ReceivedEvent

Rows = TypeVar("Rows", bound=Sized)

# The first call imports pandas if it is installed. Call it at import, not at the first batch.
pa.array(())

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_columns(
    events: Sequence[ReceivedEvent], names: Sequence[str], partition_id: str
) -> pa.RecordBatch:
    """Return these columns of events of one partition, a row for each event.

    Args:
        events: Any sequence; an ``EventBatch`` builds the columns without an object for each event.
        names: Names of ``COLUMNS``, in the order of the result.
        partition_id: The value of the column ``partition``.

    Raises:
        SourceRejectedError: an event cannot be decoded.
    """
    if isinstance(events, EventBatch):
        return events.columns(names, partition_id)
    return made_of(events, _ARRAYS, names, partition_id)


def made_of(
    rows: Rows,
    arrays: Mapping[str, Callable[[Rows], pa.Array]],
    names: Sequence[str],
    partition_id: str,
) -> pa.RecordBatch:
    """Return these columns, each made of the rows by its function; ``partition`` needs none."""
    made = [
        pa.array([partition_id] * len(rows), COLUMNS[name])
        if name == "partition"
        else arrays[name](rows)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(made, schema=schema_of(names))


def map_array(maps: Sequence[Mapping[str, object]]) -> pa.Array:
    """Return a map column, with each value as JSON.

    It is built of flat lists: one object for each map would be several times slower.
    """
    starts: list[int] = [0]
    names: list[str] = []
    values: list[str] = []
    for entries in maps:
        names += entries
        values += map(to_json, entries.values())
        starts.append(len(names))
    return pa.MapArray.from_arrays(
        pa.array(starts, pa.int32()), pa.array(names, pa.string()), pa.array(values, pa.string())
    )


def without_own_column(system_properties: Mapping[str, object]) -> Mapping[str, object]:
    """Return the system properties without those that have a column of their own."""
    return {name: value for name, value in system_properties.items() if name not in WITH_OWN_COLUMN}


def _field(column: str, field: str) -> Callable[[Sequence[ReceivedEvent]], pa.Array]:
    value_of = attrgetter(field)
    return lambda events: pa.array(list(map(value_of, events)), COLUMNS[column])


def _times(events: Sequence[ReceivedEvent]) -> pa.Array:
    """Convert to microseconds since 1970 in UTC, without going through any local time zone."""
    spans = [(event.enqueued_time - _EPOCH) // _MICROSECOND for event in events]
    return pa.array(spans, pa.int64()).cast(COLUMNS["enqueuedTime"])


def _publishers(events: Sequence[ReceivedEvent]) -> pa.Array:
    names = [event.system_properties.get(PUBLISHER) for event in events]
    return pa.array([None if name is None else str(name) for name in names], COLUMNS["publisher"])


_ARRAYS: Final[Mapping[str, Callable[[Sequence[ReceivedEvent]], pa.Array]]] = {
    "body": _field("body", "body"),
    "offset": _field("offset", "offset"),
    "sequenceNumber": _field("sequenceNumber", "sequence_number"),
    "enqueuedTime": _times,
    "publisher": _publishers,
    "partitionKey": _field("partitionKey", "partition_key"),
    "properties": lambda events: map_array([event.properties for event in events]),
    "systemProperties": lambda events: map_array(
        [without_own_column(event.system_properties) for event in events]
    ),
}

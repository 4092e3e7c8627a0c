"""Converts events to Arrow columns; defines the names and types of the columns.

Names and types are those of the Scala connector for Event Hubs. As there, values of ``properties``
and ``systemProperties`` are JSON, so that ``1`` and ``"1"`` stay different.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent

_TEXTS: Final = MapType(StringType(), StringType())

SCHEMA: Final = StructType(
    [
        StructField("body", BinaryType()),
        StructField("partition", StringType()),
        StructField("offset", StringType()),
        StructField("sequenceNumber", LongType()),
        StructField("enqueuedTime", TimestampType()),
        StructField("publisher", StringType()),
        StructField("partitionKey", StringType()),
        StructField("properties", _TEXTS),
        StructField("systemProperties", _TEXTS),
    ]
)
"""All columns of the source. A query may select some of them by ``.schema(...)``."""

ROWS_MAX: Final = 10_000
"""Most rows in one Arrow batch: Spark's own default."""

BODY_BYTES_MAX: Final = 8 * 1024 * 1024
"""Most bytes of bodies in one Arrow batch: a single event may have more than a megabyte."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_PUBLISHER: Final = "x-opt-publisher"
_WITH_OWN_COLUMN: Final = frozenset(
    {
        "x-opt-sequence-number",
        "x-opt-offset",
        "x-opt-enqueued-time",
        "x-opt-partition-key",
        _PUBLISHER,
    }
)

Chunk = tuple[str, Sequence[ReceivedEvent]]


def check_schema(schema: StructType) -> None:
    """Check that the source has these columns.

    Raises:
        ConfigurationError: a column is unknown or has a different type.
    """
    types = {known.name: known.dataType for known in SCHEMA}
    for wanted in schema:
        if wanted.name not in types:
            raise ConfigurationError(
                f"the source has no column {wanted.name!r}: it has {', '.join(types)}"
            )
        if wanted.dataType != types[wanted.name]:
            raise ConfigurationError(
                f"column {wanted.name!r} is of type {types[wanted.name].simpleString()}, not "
                f"{wanted.dataType.simpleString()}: cast it after load()"
            )


def to_record_batches(schema: StructType, chunks: Iterable[Chunk]) -> Iterator[pa.RecordBatch]:
    """Convert events of one or several partitions to Arrow batches.

    A batch has at most ``ROWS_MAX`` rows, and at most ``BODY_BYTES_MAX`` unless it has one row. The
    events of a partition keep their order.
    """
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    partitions: list[str] = []
    events: list[ReceivedEvent] = []
    body_bytes = 0

    def batch() -> pa.RecordBatch:
        columns = [
            _COLUMNS[wanted.name](wanted.type, partitions, events) for wanted in arrow_schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=arrow_schema)

    for partition_id, received in chunks:
        sizes = [len(event.body) for event in received]
        total_bytes = body_bytes + sum(sizes)
        if len(events) + len(received) <= ROWS_MAX and total_bytes <= BODY_BYTES_MAX:
            partitions += [partition_id] * len(received)
            events += received
            body_bytes = total_bytes
            continue
        for event, size in zip(received, sizes, strict=True):
            if events and (len(events) >= ROWS_MAX or body_bytes + size > BODY_BYTES_MAX):
                yield batch()
                partitions, events, body_bytes = [], [], 0
            partitions.append(partition_id)
            events.append(event)
            body_bytes += size
    if events:
        yield batch()


Column = Callable[[pa.DataType, list[str], list[ReceivedEvent]], pa.Array]
"""Makes a column of a type, from the partition and the event of each row."""


def _field(name: str) -> Column:
    value_of = attrgetter(name)
    return lambda kind, _, events: pa.array(map(value_of, events), kind)


def _times(kind: pa.DataType, _: list[str], events: list[ReceivedEvent]) -> pa.Array:
    """Convert to microseconds since 1970 in UTC, without going through any local time zone."""
    spans = [(event.enqueued_time - _EPOCH) // _MICROSECOND for event in events]
    return pa.array(spans, pa.int64()).cast(kind)


def _publishers(kind: pa.DataType, _: list[str], events: list[ReceivedEvent]) -> pa.Array:
    names = [event.system_properties.get(_PUBLISHER) for event in events]
    return pa.array([None if name is None else str(name) for name in names], kind)


def _properties(kind: pa.DataType, _: list[str], events: list[ReceivedEvent]) -> pa.Array:
    return _map_array(kind, [event.properties for event in events], frozenset())


def _system_properties(kind: pa.DataType, _: list[str], events: list[ReceivedEvent]) -> pa.Array:
    return _map_array(kind, [event.system_properties for event in events], _WITH_OWN_COLUMN)


_COLUMNS: Final[Mapping[str, Column]] = {
    "body": _field("body"),
    "partition": lambda kind, partitions, _: pa.array(partitions, kind),
    "offset": _field("offset"),
    "sequenceNumber": _field("sequence_number"),
    "enqueuedTime": _times,
    "publisher": _publishers,
    "partitionKey": _field("partition_key"),
    "properties": _properties,
    "systemProperties": _system_properties,
}


def _map_array(
    kind: pa.MapType, maps: Sequence[Mapping[str, object]], left_out: frozenset[str]
) -> pa.Array:
    """Build a map column from flat lists: one object for each map would be several times slower."""
    starts, names, values = [0], [], []
    for entries in maps:
        for name, value in entries.items():
            if name not in left_out:
                names.append(name)
                values.append(to_json(value))
        starts.append(len(names))
    return pa.MapArray.from_arrays(
        pa.array(starts, pa.int32()),
        pa.array(names, pa.string()),
        pa.array(values, pa.string()),
    ).cast(kind)


def to_json(value: object) -> str:
    """Return a property's value as JSON; bytes become ``{"base64": "..."}``."""
    if type(value) is int:
        return str(value)
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)

"""The source's columns as Spark types, and its batches; ``eventproc.columns`` makes the columns."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from eventproc.columns import to_columns
from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent, body_bytes

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
    names = schema.fieldNames()
    waiting: list[pa.RecordBatch] = []
    row_count = byte_count = 0
    for partition_id, received in chunks:
        for part, part_bytes in _parts(received):
            if row_count + len(part) > ROWS_MAX or byte_count + part_bytes > BODY_BYTES_MAX:
                yield from _joined(waiting)
                waiting, row_count, byte_count = [], 0, 0
            waiting.append(to_columns(part, names, partition_id))
            row_count += len(part)
            byte_count += part_bytes
    yield from _joined(waiting)


def _parts(events: Sequence[ReceivedEvent]) -> Iterator[tuple[Sequence[ReceivedEvent], int]]:
    """Yield the events in parts that fit into a batch, each with the bytes of its bodies."""
    if not events:
        return
    byte_count = body_bytes(events)
    if len(events) == 1 or (len(events) <= ROWS_MAX and byte_count <= BODY_BYTES_MAX):
        yield events, byte_count
        return
    middle = min(len(events) // 2, ROWS_MAX)
    yield from _parts(events[:middle])
    yield from _parts(events[middle:])


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield all rows as one batch: Spark's cost of a batch is that of many rows."""
    if len(batches) > 1:
        batches = pa.Table.from_batches(batches).combine_chunks().to_batches()
    yield from batches

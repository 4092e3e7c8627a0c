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
        left = received
        while left:
            part = left[: ROWS_MAX - row_count]
            while len(part) > 1 and byte_count + body_bytes(part) > BODY_BYTES_MAX:
                part = part[: len(part) // 2]
            part_bytes = body_bytes(part)
            if row_count and (not part or byte_count + part_bytes > BODY_BYTES_MAX):
                yield from _joined(waiting)
                waiting, row_count, byte_count = [], 0, 0
                continue
            waiting.append(to_columns(part, names, partition_id))
            row_count += len(part)
            byte_count += part_bytes
            left = left[len(part) :]
    yield from _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield all rows as one batch, because each batch costs Spark as much as hundreds of rows."""
    if len(batches) > 1:
        batches = pa.Table.from_batches(batches).combine_chunks().to_batches()
    yield from batches

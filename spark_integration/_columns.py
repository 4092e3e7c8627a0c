"""The source's columns as Spark types, and its batches; ``eventproc.columns`` makes the columns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
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
from eventproc.errors import ConfigurationError, SourceRejectedError
from eventproc.models import ReceivedEvent
from eventproc.models._events import body_bytes

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


Skip = Callable[[str, int, SourceRejectedError], None]
"""Is told of an event that is left out: its partition, its number, and why it is not decoded."""


def to_record_batches(
    schema: StructType, chunks: Iterable[Chunk], skip: Skip | None = None
) -> Iterator[pa.RecordBatch]:
    """Convert events of one or several partitions to Arrow batches.

    A batch has at most ``ROWS_MAX`` rows, and at most ``BODY_BYTES_MAX`` unless it has one row. The
    events of a partition keep their order.

    Raises:
        SourceRejectedError: an event cannot be decoded, and *skip* is not given.
    """
    names = schema.fieldNames()
    waiting: list[pa.RecordBatch] = []
    row_count = byte_count = 0
    for partition_id, received in chunks:
        left, length_max = received, ROWS_MAX
        while left:
            part = left[: min(ROWS_MAX - row_count, length_max)]
            try:
                while len(part) > 1 and byte_count + body_bytes(part) > BODY_BYTES_MAX:
                    part = part[: len(part) // 2]
                part_bytes = body_bytes(part)
                fits = not row_count or (part and byte_count + part_bytes <= BODY_BYTES_MAX)
                columns = to_columns(part, names, partition_id) if fits else None
            except SourceRejectedError as error:
                if skip is None:
                    raise SourceRejectedError(
                        f"in partition {partition_id!r} {error}. To read on without such events, "
                        "set skipUndecodable=true: they are counted in the log"
                    ) from error
                # Halve until the event is alone. The next ones may be like it, so begin small.
                length_max = max(1, len(part) // 2)
                if len(part) == 1:
                    skip(partition_id, part[0].sequence_number, error)
                    left = left[1:]
                continue
            if columns is None:
                yield from _joined(waiting)
                waiting, row_count, byte_count = [], 0, 0
                continue
            waiting.append(columns)
            row_count += len(part)
            byte_count += part_bytes
            left, length_max = left[len(part) :], min(2 * length_max, ROWS_MAX)
    yield from _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield all rows as one batch, because each batch costs Spark as much as hundreds of rows."""
    if len(batches) > 1:
        batches = pa.Table.from_batches(batches).combine_chunks().to_batches()
    yield from batches

"""Checks the sink's rows, and converts Arrow columns back to events.

Those columns of the source that are in ``NEEDED`` are required, because every event and every
checkpoint is made from them; the others are optional. The query may compute ``body`` itself.
Further columns are for handlers that have ``process_columns``.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyarrow.compute import run_end_encode
from pyspark.sql.types import StringType, StructType

from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent
from spark_integration._columns import SCHEMA
from spark_integration._sink.column_handler import RowBatch
from spark_integration._sink.events import events_of
from spark_integration._sink.partition import Rows

NEEDED: Final = ("body", "partition", "offset", "sequenceNumber", "enqueuedTime")


def check_rows(schema: StructType, takes_columns: Callable[[], bool]) -> None:
    """Check that the rows can be converted to events, and that the handler gets all columns.

    Args:
        schema: The columns of the query.
        takes_columns: Returns whether the handler has ``process_columns``; called only if there are
            columns that an event does not have.

    Raises:
        ConfigurationError: a needed column is missing or of another type, or a handler of events
            would not get a column.
    """
    type_by_name = {known.name: known.dataType for known in SCHEMA}
    missing = [name for name in NEEDED if name not in schema.fieldNames()]
    if missing:
        raise ConfigurationError(
            f"the rows have no column {missing[0]!r}: the sink needs {', '.join(NEEDED)} of the "
            "source"
        )
    for given in schema:
        if given.name not in type_by_name:
            if takes_columns():
                continue
            raise ConfigurationError(
                f"the handler would not get column {given.name!r}: events are made of "
                f"{', '.join(type_by_name)}. Define process_columns, which gets all columns of the "
                "query; or put it into body, or drop it"
            )
        is_text_body = given.name == "body" and isinstance(given.dataType, StringType)
        if given.dataType != type_by_name[given.name] and not is_text_body:
            raise ConfigurationError(
                f"column {given.name!r} is of type {given.dataType.simpleString()}, and the sink "
                f"needs {type_by_name[given.name].simpleString()}: cast it before the sink"
            )


class ArrowRows(Rows):
    """Rows of an Arrow batch, converted to events on demand."""

    def __init__(self, columns: pa.RecordBatch) -> None:
        self.columns = columns
        self.numbers = columns.column("sequenceNumber").to_pylist()
        if columns.column("sequenceNumber").null_count:
            raise ConfigurationError(
                "a row has no sequenceNumber: the sink needs the source's values"
            )

    @property
    def last_offset(self) -> str:
        """The offset of the last row."""
        offset = self.columns.column("offset")[-1].as_py()
        if not offset:
            raise ConfigurationError("a row has no offset: the sink needs the source's values")
        return str(offset)

    def only(self, is_wanted: Sequence[bool]) -> "ArrowRows":
        """The rows whose element of ``is_wanted`` is true."""
        return ArrowRows(self.columns.filter(pa.array(is_wanted)))

    def events(self) -> Sequence[ReceivedEvent]:
        """The rows as events."""
        return events_of(self.columns, self.numbers)

    def batch(self) -> RowBatch:
        """The rows as a batch."""
        return RowBatch(self.columns, self.numbers)


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[str, ArrowRows]]:
    """Yield runs of successive rows of one partition, in order, with the partition's id."""
    partitions = batch.column("partition")
    if partitions.null_count:
        raise ConfigurationError("a row has no partition: the sink needs the source's values")
    runs = run_end_encode(partitions)
    begin = 0
    for partition_id, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield partition_id, ArrowRows(batch.slice(begin, end - begin))
        begin = end

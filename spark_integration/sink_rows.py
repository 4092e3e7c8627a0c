"""From Arrow columns back to the events that a handler takes.

The columns are those of the source. Those in ``NEEDED`` have to be there: checkpoints are made of
some, and no event is without them. ``body`` may be computed anew; the others may be left out.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyarrow.compute import run_end_encode
from pyspark.sql.types import StringType, StructType

from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent
from spark_integration.columns import SCHEMA
from spark_integration.sink_events import events_of
from spark_integration.sink_partition import Rows

NEEDED: Final = ("body", "partition", "offset", "sequenceNumber", "enqueuedTime")


def check_rows(schema: StructType) -> None:
    """Refuse rows that are no events.

    Raises:
        ConfigurationError: a needed column is missing, one is unknown, or of another type.
    """
    type_by_name = {known.name: known.dataType for known in SCHEMA}
    missing = [name for name in NEEDED if name not in schema.fieldNames()]
    if missing:
        raise ConfigurationError(
            f"the rows have no column {missing[0]!r}: the sink needs {', '.join(NEEDED)} as the "
            "source gives them"
        )
    for given in schema:
        if given.name not in type_by_name:
            raise ConfigurationError(
                f"the sink has no use for column {given.name!r}: handlers get events, made of "
                f"{', '.join(type_by_name)}. Put it into body, or drop it"
            )
        is_text_body = given.name == "body" and isinstance(given.dataType, StringType)
        if given.dataType != type_by_name[given.name] and not is_text_body:
            raise ConfigurationError(
                f"column {given.name!r} is of type {given.dataType.simpleString()}, and the sink "
                f"needs {type_by_name[given.name].simpleString()}: convert it before the sink"
            )


class ArrowRows(Rows):
    """Rows of an Arrow batch; they become events only on demand."""

    columns: pa.RecordBatch

    def __init__(self, columns: pa.RecordBatch) -> None:
        self.columns = columns
        self.numbers = columns.column("sequenceNumber").to_pylist()
        if columns.column("sequenceNumber").null_count:
            raise ConfigurationError("a row has no sequenceNumber: the sink needs the source's")

    @property
    def last_offset(self) -> str:
        """The offset of the last row."""
        offset = self.columns.column("offset")[-1].as_py()
        if not offset:
            raise ConfigurationError("a row has no offset: the sink needs the source's")
        return str(offset)

    def only(self, is_wanted: Sequence[bool]) -> "ArrowRows":
        """Some of them."""
        return ArrowRows(self.columns.filter(pa.array(is_wanted)))

    def events(self) -> Sequence[ReceivedEvent]:
        """All of them as events."""
        return events_of(self.columns, self.numbers)


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[str, ArrowRows]]:
    """Give the rows of a batch in order: those of one partition, as far as they are together."""
    partitions = batch.column("partition")
    if partitions.null_count:
        raise ConfigurationError("a row has no partition: the sink needs the source's")
    runs = run_end_encode(partitions)
    begin = 0
    for partition_id, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield partition_id, ArrowRows(batch.slice(begin, end - begin))
        begin = end

"""The batch source in Spark's interface."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from eventproc._base.logs import get_logger
from eventproc._base.threads import exclude_imports_from_collections
from eventproc.errors import ConfigurationError
from spark_integration._errors import EventsLostError
from spark_integration._options import SourceOptions
from spark_integration._source.hub import Hub, span_of
from spark_integration._source.planning import EventRange, expired, in_order
from spark_integration._source.reading import lost_message
from spark_integration._source.tasks import divide, read


class EventProcReader(DataSourceReader):
    """Reads the events between two positions; both are looked up when the read is planned."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Look up the positions, and divide the events between them among tasks."""
        exclude_imports_from_collections()
        return divide(self._options, plan(self._options))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the ranges of one task."""
        return read(self._options, self._schema, partition)


def plan(options: SourceOptions, hub: Hub | None = None) -> list[EventRange]:
    """Return the ranges of a batch read.

    Raises:
        ConfigurationError: the hub does not have a position, or the end is before the start.
        EventsLostError: retention deleted events after the start, and ``failOnDataLoss`` is true.
    """
    hub = hub or Hub(options)
    hub.check()
    ends = hub.partition_ends()
    start, end = hub.find(options.starting, ends), hub.find(options.ending, ends)
    for partition_id, begin in start.items():
        if end[partition_id] < begin:
            raise ConfigurationError(
                f"in partition {partition_id!r} the ending position is before event "
                f"{end[partition_id]}, and the starting position is at event {begin}"
            )
    gone = expired(start, {p: span_of(properties) for p, properties in ends.items()})
    if gone and options.fails_on_data_loss and not options.is_compacted:
        raise EventsLostError(lost_message(gone))
    log = get_logger("eventproc.spark", consumer_group=options.consumer_group)
    for missing in gone:
        if not options.is_compacted:
            log.warning(
                "events_expired", partition_id=missing.partition_id, missing_count=len(missing)
            )
        start[missing.partition_id] = min(missing.end, end[missing.partition_id])
    return [
        EventRange(partition_id=partition_id, start=start[partition_id], end=end[partition_id])
        for partition_id in in_order(end)
        if end[partition_id] > start[partition_id]
    ]

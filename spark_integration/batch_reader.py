"""The batch source as Spark sees it: for replays and back-fills."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from eventproc.errors import ConfigurationError
from eventproc.logs import get_logger
from spark_integration.errors import EventsLostError
from spark_integration.hub import Hub, span_of
from spark_integration.options import SourceOptions
from spark_integration.planning import EventRange, expired, in_order
from spark_integration.reading import lost_message
from spark_integration.tasks import divide, read
from spark_integration.worker import settle_in


class EventProcReader(DataSourceReader):
    """The events between two positions, as the hub has them when the read is planned."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Find the positions, and deal the events between them out to tasks."""
        settle_in()
        return divide(self._options, plan(self._options))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what one task was given."""
        return read(self._options, self._schema, partition)


def plan(options: SourceOptions, hub: Hub | None = None) -> list[EventRange]:
    """The ranges that a batch read has.

    Raises:
        ConfigurationError: a position is none of the hub's, or the end lies before the start.
        EventsLostError: retention passed the start, and ``failOnDataLoss`` is on.
    """
    hub = hub or Hub(options)
    hub.check()
    hold = hub.hold()
    start, end = hub.find(options.starting, hold), hub.find(options.ending, hold)
    for partition_id, begin in start.items():
        if end[partition_id] < begin:
            raise ConfigurationError(
                f"in partition {partition_id!r} the ending position is before event "
                f"{end[partition_id]}, and the starting position is at event {begin}"
            )
    lost = expired(start, {p: span_of(properties) for p, properties in hold.items()})
    if lost and options.fails_on_data_loss:
        raise EventsLostError(lost_message(lost))
    log = get_logger("eventproc.spark", consumer_group=options.consumer_group)
    for gone in lost:
        log.warning("events_expired", partition_id=gone.partition_id, missing_count=len(gone))
        start[gone.partition_id] = min(gone.end, end[gone.partition_id])
    return [
        EventRange(partition_id=partition_id, start=start[partition_id], end=end[partition_id])
        for partition_id in in_order(end)
        if end[partition_id] > start[partition_id]
    ]

"""The batch source in Spark's interface."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from eventproc._base.logs import get_logger
from eventproc._base.threads import exclude_imports_from_collections
from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition
from spark_integration._errors import EventsLostError
from spark_integration._options import SourceOptions
from spark_integration._positions import Positions
from spark_integration._source.hub import Hub, PartitionEnds, span_of
from spark_integration._source.planning import Bounds, EventRange, expired, in_order
from spark_integration._source.reading import lost_message
from spark_integration._source.tasks import divide, read

EVERYTHING: Final = Bounds()


class EventProcReader(DataSourceReader):
    """Reads the events between two positions; both are looked up when the read is planned."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._bounds = EVERYTHING

    def partitions(self) -> Sequence[InputPartition]:
        """Look up the positions, and divide the events between them among tasks."""
        exclude_imports_from_collections()
        return divide(self._options, plan(self._options, self._bounds))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the ranges of one task."""
        return read(self._options, self._schema, partition)


PUSHES_FILTERS: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The program of PySpark 4.1 and newer that pushes filters. In any other, Spark refuses a reader
that could take filters, because ``spark.sql.python.filterPushdown.enabled`` is off."""


def pushes_filters() -> bool:
    """Whether this process of Spark pushes filters."""
    main = sys.modules["__main__"].__spec__
    return PUSHES_FILTERS in sys.modules or (main is not None and main.name == PUSHES_FILTERS)


def plan(options: SourceOptions, bounds: Bounds = EVERYTHING) -> list[EventRange]:
    """Return the ranges of a batch read, as far as they are within bounds.

    Raises:
        ConfigurationError: the hub does not have a position, or the end is before the start.
        EventsLostError: retention deleted events after the start, and ``failOnDataLoss`` is true.
    """
    hub = Hub(options)
    hub.check()
    ends = hub.partition_ends()
    start, end = hub.find(options.starting, ends), hub.find(options.ending, ends)
    for partition_id, begin in start.items():
        if end[partition_id] < begin:
            raise ConfigurationError(
                f"in partition {partition_id!r} the ending position is before event "
                f"{end[partition_id]}, and the starting position is at event {begin}"
            )
    start, end = _within(bounds, hub, ends, start, end)
    gone = expired(start, {p: span_of(ends[p]) for p in start})
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


def _within(
    bounds: Bounds,
    hub: Hub,
    ends: PartitionEnds,
    start: Mapping[str, int],
    end: Mapping[str, int],
) -> tuple[dict[str, int], dict[str, int]]:
    """Return start and end of the partitions and events that are within bounds."""
    needed = {p: properties for p, properties in ends.items() if bounds.has(p)}

    def at(
        time: datetime | None, otherwise: Mapping[str, int], *, is_end: bool
    ) -> Mapping[str, int]:
        if time is None:
            return otherwise
        position = EventPosition(enqueued_time=time, is_inclusive=not is_end)
        return hub.find(Positions(otherwise=position), needed)

    since, until = at(bounds.since, start, is_end=False), at(bounds.until, end, is_end=True)
    begin = {p: max(start[p], since[p], bounds.first or 0) for p in needed}
    stop = {p: min(end[p], until[p]) for p in needed}
    if bounds.last is not None:
        stop = {p: min(number, bounds.last + 1) for p, number in stop.items()}
    return begin, stop

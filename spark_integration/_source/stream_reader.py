"""The streaming source in Spark's interface.

On the driver, Spark keeps one Python process for each query, which runs everything here except
``read``. Executors run ``read``, on a copy that was pickled before any other method was called.

PySpark 4.0 and 4.1 plan a batch without telling where it begins, how many events it may have, or
whether the trigger is ``AvailableNow``. So the reader itself remembers where the last batch ends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from eventproc._base.threads import exclude_imports_from_collections
from spark_integration._options import SourceOptions
from spark_integration._source import planning as offsets
from spark_integration._source.planner import StreamPlanner
from spark_integration._source.planning import Json, ranges_between
from spark_integration._source.tasks import divide, read

try:
    from pyspark.sql.streaming.datasource import (
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # PySpark 4.0 and 4.1, which give no limit
    ReadLimit = SupportsTriggerAvailableNow = object
    ReadMaxRows = ()


class EventProcStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a hub in micro-batches."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._reached: Json | None = None
        """Where the last batch ended, if this process has seen it."""

        self._may_be_only = True
        """Whether the next batch may be the only one, as with ``AvailableNow``."""

    @cached_property
    def _planner(self) -> StreamPlanner:
        exclude_imports_from_collections()
        return StreamPlanner(self._options)

    def initialOffset(self) -> Json:
        """Return the offset at which a query without an offset log starts."""
        first = self._planner.first()
        return offsets.to_json(self._planner.hub_name, first, self._planner.hub_created_at())

    def latestOffset(self, start: Json | None = None, limit: ReadLimit | None = None) -> Json:
        """Return the end of the next batch.

        PySpark 4.0 and 4.1 give no argument. With ``AvailableNow`` they call this once, and end the
        query there. So there the first batch that this process plans has no limit, unless it has
        repeated one before.
        """
        hub = self._planner.hub_name
        if start is not None:
            events_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        else:
            start = self._reached
            events_max = None if self._may_be_only else self._planner.events_max()
        self._may_be_only = False
        noted = None if start is None else offsets.hub_created_in(start)
        if start is None:
            latest = self._planner.all_available()
        else:
            latest = self._planner.latest(offsets.from_json(hub, start), events_max, noted)
        self._reached = offsets.to_json(hub, latest, self._planner.hub_created_at(noted))
        return self._reached

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit from ``maxEventsPerTrigger``."""
        return ReadMaxRows(self._planner.events_max())

    def prepareForTriggerAvailableNow(self) -> None:
        """End the query at the last event that the hub has now."""
        self._planner.fix_end()

    def reportLatestOffset(self) -> Json | None:
        """Return the hub's end, and the lag, which Spark only shows in the query's progress."""
        found = self._planner.report()
        if found is None:
            return None
        end, lag = found
        created_at = self._planner.hub_created_at()
        return offsets.to_json(self._planner.hub_name, end, created_at) | {"lag": asdict(lag)}

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Divide the events between two offsets among tasks.

        PySpark 4.0 and 4.1 call this when a query is started again, too, with the last offset as
        both.
        """
        hub = self._planner.hub_name
        begin, stop = offsets.from_json(hub, start), offsets.from_json(hub, end)
        self._planner.check_hub(begin, stop, offsets.hub_created_in(end))
        self._reached = end
        self._may_be_only = self._may_be_only and start == end
        return divide(self._options, ranges_between(begin, stop))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the ranges of one task."""
        return read(self._options, self._schema, partition)

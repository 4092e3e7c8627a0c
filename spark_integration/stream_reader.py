"""The streaming source as Spark sees it.

Spark keeps one Python process for each query on the driver, in which everything here but ``read``
runs; ``read`` runs on executors, on a copy that was pickled before anything was asked.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from spark_integration import offsets
from spark_integration.offsets import Json
from spark_integration.options import SourceOptions
from spark_integration.planner import StreamPlanner
from spark_integration.planning import ranges_between
from spark_integration.tasks import divide, read
from spark_integration.worker import settle_in


class EventProcStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches of a hub."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @cached_property
    def _planner(self) -> StreamPlanner:
        settle_in()
        return StreamPlanner(self._options)

    def initialOffset(self) -> Json:
        """Where a query begins that has no offset log yet."""
        return offsets.to_json(self._planner.hub_name, self._planner.first())

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """Where the next batch ends."""
        hub = self._planner.hub_name
        events_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        latest = self._planner.latest(offsets.from_json(hub, start), events_max)
        return offsets.to_json(hub, latest)

    def getDefaultReadLimit(self) -> ReadLimit:
        """``maxEventsPerTrigger``."""
        return ReadMaxRows(self._planner.events_max())

    def prepareForTriggerAvailableNow(self) -> None:
        """Read up to where the hub ends now, and stop there."""
        self._planner.fix_end()

    def reportLatestOffset(self) -> Json | None:
        """Where the hub ends: what is left to read appears in the query's progress."""
        end = self._planner.end()
        return None if end is None else offsets.to_json(self._planner.hub_name, end)

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Deal the events between two offsets out to tasks."""
        hub = self._planner.hub_name
        ranges = ranges_between(offsets.from_json(hub, start), offsets.from_json(hub, end))
        return divide(self._options, ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what one task was given."""
        return read(self._options, self._schema, partition)

"""The input of a source's task: made on the driver, read on an executor."""

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from eventproc._base.logs import get_logger
from eventproc._base.threads import exclude_imports_from_collections
from eventproc.errors import SourceRejectedError
from spark_integration._columns import to_record_batches
from spark_integration._options import SourceOptions
from spark_integration._source.planning import EventRange, tasks_of
from spark_integration._source.reading import read_ranges


class RangesToRead(InputPartition):
    """The ranges of one task. Spark calls a task's input a partition."""

    def __init__(self, ranges: Sequence[EventRange]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


def divide(options: SourceOptions, ranges: Sequence[EventRange]) -> list[InputPartition]:
    """Divide ranges among tasks."""
    tasks = tasks_of(
        ranges,
        tasks_max=options.tasks_max,
        events_per_task_max=options.events_per_task_max,
    )
    return [RangesToRead(task) for task in tasks]


def read(
    options: SourceOptions, schema: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Read the ranges of one task as Arrow batches."""
    exclude_imports_from_collections()
    # For a read without ranges, Spark creates an empty partition of its own.
    ranges = partition.ranges if isinstance(partition, RangesToRead) else ()
    skipped = _Skipped()
    try:
        yield from to_record_batches(
            schema,
            read_ranges(options, ranges),
            skipped.note if options.skips_undecodable else None,
        )
    finally:
        skipped.log()


class _Skipped:
    """Counts the events of a task that are left out."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, tuple[int, str]] = {}

    def note(self, partition_id: str, sequence_number: int, error: SourceRejectedError) -> None:
        """Count an event."""
        self._counts[partition_id] += 1
        self._first.setdefault(partition_id, (sequence_number, str(error)))

    def log(self) -> None:
        """Log the counts, one line for each partition."""
        for partition_id, count in self._counts.items():
            sequence_number, error = self._first[partition_id]
            get_logger("eventproc.spark").warning(
                "undecodable_events_skipped",
                partition_id=partition_id,
                skipped_count=count,
                sequence_number=sequence_number,
                error=error,
            )

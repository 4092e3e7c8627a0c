"""The input of a source's task: made on the driver, read on an executor."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from eventproc.concurrency.garbage import exclude_imports_from_collections
from spark_integration.columns import to_record_batches
from spark_integration.options import SourceOptions
from spark_integration.source.planning import EventRange, tasks_of
from spark_integration.source.reading import read_ranges


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
    return to_record_batches(schema, read_ranges(options, ranges))

"""Publishes the rows of one task."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext

from eventproc.errors import EventRefusedError, SourceError
from spark_integration.errors import PublishFailedError
from spark_integration.publish.connections import Connections
from spark_integration.publish.options import PublishOptions
from spark_integration.publish.rows import events_of


def publish_rows(
    options: PublishOptions, batches: Iterator[pa.RecordBatch], connections: Connections
) -> int:
    """Publish rows; return their number when every one of them is acknowledged.

    Raises:
        PublishFailedError: a row cannot be published, or may not be published.
        ConfigurationError: the target cannot work on this machine.
    """
    done = 0
    for batch in batches:
        try:
            events = events_of(batch, options.property_values)
            connections.publish(options.target, events, options.patience)
        except EventRefusedError as error:
            raise PublishFailedError(
                f"row {done + error.index + 1} of {_task()} cannot be published: {error}"
            ) from error
        except SourceError as error:
            raise PublishFailedError(
                f"rows {done + 1} to {done + batch.num_rows} of {_task()} are not known to be "
                f"published: {error}"
            ) from error
        done += batch.num_rows
    return done


def _task() -> str:
    context = TaskContext.get()
    return f"Spark's partition {context.partitionId()}" if context else "the rows"

"""The publishing sink in Spark's interface, for streams and for batches.

``write`` runs on executors, ``commit`` and ``abort`` on the driver. A task ends after its rows are
published, so ``commit`` and ``abort`` only log: published rows cannot be taken back.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from eventproc._base.logs import get_logger
from eventproc._base.threads import exclude_imports_from_collections
from eventproc.errors import EventRefusedError, SourceError
from spark_integration._errors import PublishFailedError
from spark_integration._publish.connections import Connections, connections
from spark_integration._publish.options import PublishOptions
from spark_integration._publish.rows import events_of
from spark_integration._stream_writer import DataSourceStreamArrowWriter


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


Messages = Sequence[WriterCommitMessage | None]


class RowsPublished(WriterCommitMessage):
    """A task's message to the driver."""

    def __init__(self, row_count: int) -> None:
        self.row_count = row_count


class PublishStreamWriter(DataSourceStreamArrowWriter):
    """Publishes the rows of each micro-batch."""

    def __init__(self, options: PublishOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> RowsPublished:
        """Publish the rows of one task."""
        return _write(self._options, iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark calls it so
        """Log how many rows were published."""
        _log_published(messages, batchId)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark calls it so
        """Log that a batch failed."""
        _log_failed(messages, batchId)


class PublishBatchWriter(DataSourceArrowWriter):
    """Publishes the rows of a DataFrame."""

    def __init__(self, options: PublishOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> RowsPublished:
        """Publish the rows of one task."""
        return _write(self._options, iterator)

    def commit(self, messages: Messages) -> None:
        """Log how many rows were published."""
        _log_published(messages, None)

    def abort(self, messages: Messages) -> None:
        """Log that the write failed."""
        _log_failed(messages, None)


def _write(options: PublishOptions, rows: Iterator[pa.RecordBatch]) -> RowsPublished:
    exclude_imports_from_collections()
    return RowsPublished(publish_rows(options, rows, connections()))


def _log_published(messages: Messages, batch_id: int | None) -> None:
    log = get_logger("eventproc.spark")
    log.info(
        "spark_rows_published",
        batch_id=batch_id,
        task_count=len(messages),
        row_count=sum(message.row_count for message in _done(messages)),
    )


def _log_failed(messages: Messages, batch_id: int | None) -> None:
    done = _done(messages)
    log = get_logger("eventproc.spark")
    log.warning(
        "spark_publish_failed",
        batch_id=batch_id,
        task_count=len(messages),
        done_count=len(done),
        row_count=sum(message.row_count for message in done),
    )


def _done(messages: Messages) -> list[RowsPublished]:
    return [message for message in messages if isinstance(message, RowsPublished)]

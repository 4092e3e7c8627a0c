"""The streaming sink in Spark's interface.

``write`` runs on executors, ``commit`` and ``abort`` on the driver, each on a copy of the writer.
Only the tasks' messages connect them.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from eventproc._base.logs import get_logger
from eventproc._base.threads import exclude_imports_from_collections
from spark_integration._sink.options import SinkOptions
from spark_integration._sink.records import TaskReport
from spark_integration._sink.task import commit_reports, handle_rows
from spark_integration._stream_writer import DataSourceStreamArrowWriter


class TaskDone(WriterCommitMessage):
    """A task's message to the driver."""

    def __init__(self, report: TaskReport) -> None:
        self.report = report


class EventProcStreamWriter(DataSourceStreamArrowWriter):
    """Calls handlers with the rows of a query, and commits the checkpoints."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        """Handle the rows of one task."""
        exclude_imports_from_collections()
        return TaskDone(handle_rows(self._options, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark calls it so
        """Write the checkpoints of a batch whose tasks have all succeeded."""
        exclude_imports_from_collections()
        commit_reports(self._options, batchId, _reports(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark calls it so
        """Log that a batch failed. Nothing is written, so the batch is delivered again."""
        exclude_imports_from_collections()
        log = get_logger("eventproc.spark")
        log.warning(
            "spark_batch_aborted",
            batch_id=batchId,
            task_count=len(messages),
            done_count=len(_reports(messages)),
        )


def _reports(messages: Sequence[WriterCommitMessage | None]) -> list[TaskReport]:
    return [message.report for message in messages if isinstance(message, TaskDone)]

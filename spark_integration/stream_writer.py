"""The streaming sink as Spark sees it.

``write`` runs on executors, on a copy of the writer; ``commit`` and ``abort`` run on the driver,
on another one, so what travels between them are the messages.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from eventproc.logs import get_logger
from spark_integration.sink_options import SinkOptions
from spark_integration.sink_records import TaskReport
from spark_integration.sink_task import commit_reports, handle_rows
from spark_integration.worker import settle_in


class TaskDone(WriterCommitMessage):
    """What a task tells the driver."""

    def __init__(self, report: TaskReport) -> None:
        self.report = report


class EventProcStreamWriter(DataSourceStreamArrowWriter):
    """Hands the rows of a query to a handler, and writes its checkpoints."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        """Handle the rows of one task."""
        settle_in()
        return TaskDone(handle_rows(self._options, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark calls it so
        """Write the checkpoints of a batch that is handled."""
        settle_in()
        commit_reports(self._options, batchId, _reports(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark calls it so
        """Write nothing: the batch comes again."""
        settle_in()
        log = get_logger("eventproc.spark")
        log.warning(
            "spark_batch_aborted",
            batch_id=batchId,
            task_count=len(messages),
            done_count=len(_reports(messages)),
        )


def _reports(messages: Sequence[WriterCommitMessage | None]) -> list[TaskReport]:
    return [message.report for message in messages if isinstance(message, TaskDone)]

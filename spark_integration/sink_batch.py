"""A batch as a frame: handled by ``mapInArrow``, whose rows are the reports of the tasks."""

import pickle
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_integration.sink_options import SinkOptions
from spark_integration.sink_records import BatchSummary
from spark_integration.sink_rows import check_rows
from spark_integration.sink_task import commit_reports, handle_rows
from spark_integration.worker import settle_in


def handle_frame(options: SinkOptions, batch: DataFrame, batch_id: int) -> BatchSummary:
    """Hand a frame of a streaming query to handlers, and write its checkpoints."""
    check_rows(batch.schema)

    def handle(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_in()
        report = pickle.dumps(handle_rows(options, rows))
        yield pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], ["report"])

    rows = batch.mapInArrow(handle, "report binary").collect()
    # What the tasks of this very query have written, on executors that run its code anyway.
    return commit_reports(options, batch_id, [pickle.loads(row["report"]) for row in rows])  # noqa: S301

"""Handles a batch that is a DataFrame, in tasks of ``mapInArrow``, which return their reports."""

import pickle
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from eventproc._base.threads import exclude_imports_from_collections
from spark_integration._sink.options import SinkOptions
from spark_integration._sink.records import BatchSummary
from spark_integration._sink.rows import check_rows
from spark_integration._sink.task import commit_reports, handle_rows


def handle_frame(options: SinkOptions, batch: DataFrame, batch_id: int) -> BatchSummary:
    """Call handlers with the rows of one micro-batch, and commit its checkpoints."""
    check_rows(batch.schema, options.takes_columns)

    def handle(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        exclude_imports_from_collections()
        report = pickle.dumps(handle_rows(options, rows))
        yield pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], ["report"])

    rows = batch.mapInArrow(handle, "report binary").collect()
    # Unpickling is safe: the reports come from this query's own tasks.
    return commit_reports(options, batch_id, [pickle.loads(row["report"]) for row in rows])  # noqa: S301

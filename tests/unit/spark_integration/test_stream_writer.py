"""The base of stream writers in versions of PySpark that lack a class for it."""

import runpy
import sys

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter


def test_without_a_class_for_streams_a_stream_writer_is_one_of_batches(monkeypatch):
    """PySpark 4.0 gives Arrow batches to writers of that class in a stream, too, and rows to all
    others."""
    monkeypatch.delattr(datasource, "DataSourceStreamArrowWriter", raising=False)
    monkeypatch.delitem(sys.modules, "spark_integration._stream_writer", raising=False)
    found = runpy.run_module("spark_integration._stream_writer")

    assert issubclass(found["DataSourceStreamArrowWriter"], DataSourceArrowWriter)

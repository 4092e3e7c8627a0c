"""The base of stream writers that take Arrow batches, in each version of PySpark."""

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # PySpark 4.0 gives batches to every writer of this class, in a stream, too.
    from pyspark.sql.datasource import DataSourceArrowWriter as DataSourceStreamArrowWriter

__all__ = ["DataSourceStreamArrowWriter"]

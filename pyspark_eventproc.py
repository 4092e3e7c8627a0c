"""Makes ``format("eventproc")`` known to Spark, which imports all modules named ``pyspark_*``."""

from contextlib import suppress

# Without the extra, Spark still finds other data sources. `register` says what is missing.
with suppress(ImportError):
    from spark_integration._datasource import EventProcDataSource as DefaultSource

__all__ = ["DefaultSource"]

"""Registers the data source with a Spark session."""

from typing import TYPE_CHECKING

from eventproc.errors import ConfigurationError

if TYPE_CHECKING:  # importing this package needs neither Spark nor Java
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Make ``format("eventproc")`` known to a session, and make the session active in this thread.

    Spark looks up Python data sources in the active session of the calling thread, and only the
    thread that created a session has it as its active one. So call this for each session, in each
    thread that starts queries. It may be called repeatedly, also while queries run.

    Raises:
        ConfigurationError: PySpark is missing or too old.
    """
    try:
        from spark_integration._datasource import EventProcDataSource  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigurationError(
            f"PySpark 4.0 or newer is needed, with pyarrow: {error}. Install 'eventproc[spark]' on "
            "the driver and on every executor"
        ) from error
    # No other public method makes a session active. Spark Connect does not need it.
    spark.createDataFrame([], "nothing int")
    spark.dataSource.register(EventProcDataSource)


register.__module__ = "spark_integration"

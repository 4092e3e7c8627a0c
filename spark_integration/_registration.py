"""Registers the data source with a Spark session."""

from typing import TYPE_CHECKING

from eventproc.errors import ConfigurationError

if TYPE_CHECKING:  # importing this package needs neither Spark nor Java
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Make ``format("eventproc")`` known to a session, and make the session active in this thread.

    Where the package is installed, Spark finds the format by itself: it imports the module
    ``pyspark_eventproc``. It looks once, and in the active session of the calling thread; only the
    thread that created a session has it as its active one. So call this in other threads that start
    queries, for each session, and where the package came later. It may be called repeatedly, also
    while queries run.

    Raises:
        ConfigurationError: PySpark is missing or too old.
    """
    try:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

        from spark_integration._datasource import EventProcDataSource  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(
            f"PySpark 4.0 or newer is needed, with pyarrow: {error}. Install 'eventproc[spark]' on "
            "the driver and on every executor"
        ) from error
    # No other public method makes a session active. Spark Connect does not need it.
    spark.createDataFrame([], "nothing int")
    try:
        spark.dataSource.register(EventProcDataSource)
    except PySparkException as error:  # PySpark 4.0 refuses what Spark has found by itself
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


register.__module__ = "spark_integration"

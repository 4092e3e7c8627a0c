"""Making the format known to a session."""

from typing import TYPE_CHECKING

from eventproc.errors import ConfigurationError

if TYPE_CHECKING:  # importing this package needs neither Spark nor Java
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Make ``format("eventproc")`` known to a session, and the session active in this thread.

    Spark looks for formats from Python in the active session of the calling thread, which only the
    thread that made the session has. So call it in each thread that starts queries, and for each
    session; registering again is fine, also while queries run.

    Raises:
        ConfigurationError: PySpark is missing, or too old.
    """
    try:
        from spark_integration.datasource import EventProcDataSource  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigurationError(
            f"PySpark 4.2 or newer is needed, with pyarrow: {error}. Install 'eventproc[spark]' on "
            "the driver and on every executor"
        ) from error
    # The one public call that makes a session active. On Connect there is no need, and no harm.
    spark.createDataFrame([], "nothing int")
    spark.dataSource.register(EventProcDataSource)

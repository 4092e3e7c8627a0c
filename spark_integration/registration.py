"""Making the format known to a session."""

from typing import TYPE_CHECKING

from eventproc.errors import ConfigurationError

if TYPE_CHECKING:  # importing this package needs neither Spark nor Java
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Make ``format("eventproc")`` known to a session. Registering again is fine.

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
    spark.dataSource.register(EventProcDataSource)

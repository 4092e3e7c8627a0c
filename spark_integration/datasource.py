"""The data source ``format("eventproc")``: connects options and schemas to readers and writer."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from spark_integration.columns import SCHEMA, check_schema
from spark_integration.options import parse_source_options
from spark_integration.sink.options import parse_sink_options
from spark_integration.sink.rows import check_rows
from spark_integration.sink.stream_writer import EventProcStreamWriter
from spark_integration.source.batch_reader import EventProcReader
from spark_integration.source.stream_reader import EventProcStreamReader


class EventProcDataSource(DataSource):
    """The class that ``spark_integration.register(spark)`` registers."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "eventproc"

    def schema(self) -> StructType:
        """The columns of a query that does not give a schema.

        Spark calls this in ``load()``, without saying whether it loads a stream or a batch. So
        this checks the options that neither accepts, before any query runs.
        """
        parse_source_options(self.options, is_stream=None)
        return SCHEMA

    def reader(self, schema: StructType) -> EventProcReader:
        """The reader of ``spark.read``."""
        check_schema(schema)
        return EventProcReader(parse_source_options(self.options, is_stream=False), schema)

    def streamReader(self, schema: StructType) -> EventProcStreamReader:
        """The reader of ``spark.readStream``."""
        check_schema(schema)
        return EventProcStreamReader(parse_source_options(self.options, is_stream=True), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> EventProcStreamWriter:  # noqa: ARG002, FBT001 - Spark calls it so
        """The writer of ``writeStream``."""
        check_rows(schema)
        return EventProcStreamWriter(parse_sink_options(self.options))

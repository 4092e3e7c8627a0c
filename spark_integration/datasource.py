"""``format("eventproc")``: the class that Spark knows, and nothing more."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from spark_integration.batch_reader import EventProcReader
from spark_integration.columns import SCHEMA, check_schema
from spark_integration.options import parse_source_options
from spark_integration.sink_options import parse_sink_options
from spark_integration.sink_rows import check_rows
from spark_integration.stream_reader import EventProcStreamReader
from spark_integration.stream_writer import EventProcStreamWriter


class EventProcDataSource(DataSource):
    """Register it by ``spark_integration.register(spark)``."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "eventproc"

    def schema(self) -> StructType:
        """The columns that a query gets if it does not ask for some of them.

        Asked by ``load()``: what a stream cannot do is refused there, before any query runs.
        """
        parse_source_options(self.options, is_stream=True)
        return SCHEMA

    def reader(self, schema: StructType) -> EventProcReader:
        """``spark.read``."""
        check_schema(schema)
        return EventProcReader(parse_source_options(self.options, is_stream=False), schema)

    def streamReader(self, schema: StructType) -> EventProcStreamReader:
        """``spark.readStream``."""
        check_schema(schema)
        return EventProcStreamReader(parse_source_options(self.options, is_stream=True), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> EventProcStreamWriter:  # noqa: ARG002, FBT001 - Spark calls it so
        """``writeStream``."""
        check_rows(schema)
        return EventProcStreamWriter(parse_sink_options(self.options))

"""The data source ``format("eventproc")``: connects options and schemas to readers and writer."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from eventproc._base.threads import exclude_imports_from_collections
from eventproc.errors import ConfigurationError
from spark_integration._columns import SCHEMA, check_schema
from spark_integration._options import parse_source_options
from spark_integration._publish.options import is_publishing, parse_publish_options
from spark_integration._publish.rows import check_columns
from spark_integration._publish.writer import PublishBatchWriter, PublishStreamWriter
from spark_integration._sink.options import parse_sink_options
from spark_integration._sink.rows import check_rows
from spark_integration._sink.writer import EventProcStreamWriter
from spark_integration._source.batch_reader import EventProcReader, pushes_filters
from spark_integration._source.stream_reader import EventProcStreamReader


class EventProcDataSource(DataSource):
    """The class that ``spark_integration.register(spark)`` registers."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "eventproc"

    def schema(self) -> StructType:
        """The columns of a query that does not give a schema.

        Spark calls this in ``load()``, without saying whether it loads a stream or a batch. So this
        refuses only options that neither of them accepts, before any query runs.
        """
        parse_source_options(self.options, is_stream=None)
        return SCHEMA

    def reader(self, schema: StructType) -> EventProcReader:
        """The reader of ``spark.read``."""
        check_schema(schema)
        options = parse_source_options(self.options, is_stream=False)
        if pushes_filters():
            from spark_integration._source.filters import FilteringReader  # noqa: PLC0415 - PySpark 4.1

            return FilteringReader(options, schema)
        return EventProcReader(options, schema)

    def streamReader(self, schema: StructType) -> EventProcStreamReader:
        """The reader of ``spark.readStream``."""
        check_schema(schema)
        return EventProcStreamReader(parse_source_options(self.options, is_stream=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> PublishBatchWriter:  # noqa: FBT001 - Spark calls it so
        """The writer of ``write``, which publishes."""
        if overwrite:
            raise ConfigurationError("events cannot be overwritten: use mode('append')")
        if not is_publishing(self.options):
            raise ConfigurationError(
                "a batch can only be published: give the option publish (eventhub, kafka or "
                "module:function). A handler needs writeStream"
            )
        options = parse_publish_options(self.options)
        check_columns(schema)
        return PublishBatchWriter(options)

    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002, FBT001 - Spark calls it so
    ) -> EventProcStreamWriter | PublishStreamWriter:
        """The writer of ``writeStream``, which publishes or calls handlers.

        Spark calls this for each micro-batch, in a process that it keeps for the query.
        """
        exclude_imports_from_collections()
        if is_publishing(self.options):
            options = parse_publish_options(self.options)
            check_columns(schema)
            return PublishStreamWriter(options)
        handling = parse_sink_options(self.options)
        check_rows(schema, handling.takes_columns)
        return EventProcStreamWriter(handling)

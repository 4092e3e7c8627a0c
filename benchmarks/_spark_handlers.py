"""What ``spark.py`` runs inside Spark's Python workers."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.ports import EventSource
from eventproc.sources.eventhubs import EventHubOptions

KAFKA = "EVENTPROC_BENCHMARK_KAFKA"
"""The environment variable with the address of the topic: ``host:port/topic``."""

ROWS = 10_000
"""Rows in an Arrow batch, as in the real source."""

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Columns(PartitionHandler):
    """Takes Arrow columns, and counts the bytes of the bodies."""

    async def process_columns(self, context: PartitionContext, columns: pa.RecordBatch) -> None:
        """Count bytes."""
        context.state = b"%d" % (int(context.state or 0) + columns.column("body").nbytes)


class Events(PartitionHandler):
    """Takes events, and counts the bytes of the bodies."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Count bytes."""
        size = 0
        for event in events:
            size += len(event.body)
        context.state = b"%d" % (int(context.state or 0) + size)


def kafka_topic(_: EventHubOptions) -> EventSource:
    """Make our source of the topic."""
    from eventproc.sources.kafka import KafkaEventSource  # noqa: PLC0415 - only where it is read

    servers, topic = os.environ[KAFKA].split("/")
    return KafkaEventSource(servers, topic=topic)


# --- the bounds: a source without work, and a sink that does nothing ------------------------------


class Made(InputPartition):
    """The range of rows that a task makes."""

    def __init__(self, partition_id: str, begin: int, end: int) -> None:
        super().__init__(None)
        self.partition_id, self.begin, self.end = partition_id, begin, end


class MadeReader(DataSourceStreamReader):
    """Makes rows at no cost: one Arrow batch, returned repeatedly."""

    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        self._schema = schema
        self._tasks = int(options["tasks"])
        self._rows = int(options["rowsPerBatch"])
        self._body = b"x" * int(options["body"])

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002 - Spark gives both
        return {"rows": start["rows"] + self._rows // self._tasks}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [Made(str(task), start["rows"], end["rows"]) for task in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Made)
        schema = to_arrow_schema(self._schema, timezone="UTC")
        same = {
            "body": pa.array([self._body] * ROWS, pa.binary()),
            "partition": pa.array([partition.partition_id] * ROWS),
            "offset": pa.array(["4711"] * ROWS),
            "enqueuedTime": pa.array([NOW] * ROWS, schema.field("enqueuedTime").type),
        }
        for begin in range(partition.begin, partition.end, ROWS):
            count = min(ROWS, partition.end - begin)
            columns = {name: values.slice(0, count) for name, values in same.items()}
            columns["sequenceNumber"] = pa.array(range(begin, begin + count), pa.int64())
            yield pa.RecordBatch.from_arrays(
                [columns[name] for name in schema.names], schema=schema
            )


class Done(WriterCommitMessage):
    """An empty commit message."""


class NothingArrow(DataSourceStreamArrowWriter):
    """Takes columns, and does nothing."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Done:
        for _ in iterator:
            pass
        return Done()


class Bound(DataSource):
    """The source and the sink above as a data source."""

    @classmethod
    def name(cls) -> str:
        return "bound"

    def schema(self) -> str:
        return (
            "body binary, partition string, offset string, sequenceNumber bigint, "
            "enqueuedTime timestamp"
        )

    def streamReader(self, schema: StructType) -> MadeReader:
        return MadeReader(
            schema, {name: self.options[name] for name in ("tasks", "rowsPerBatch", "body")}
        )

    def streamWriter(
        self,
        schema: StructType,  # noqa: ARG002 - Spark calls it so
        overwrite: bool,  # noqa: ARG002, FBT001 - Spark calls it so
    ) -> NothingArrow:
        return NothingArrow()

"""From Arrow columns back to the events that a handler takes.

The columns are those of the source. Those in ``NEEDED`` have to be there: checkpoints are made of
some, and no event is without them. ``body`` may be computed anew; the others may be left out.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Final

import pyarrow as pa
from pyspark.sql.types import StringType, StructType

from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent
from spark_integration.columns import SCHEMA
from spark_integration.sink_partition import Rows

NEEDED: Final = ("body", "partition", "offset", "sequenceNumber", "enqueuedTime")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def check_rows(schema: StructType) -> None:
    """Refuse rows that are no events.

    Raises:
        ConfigurationError: a needed column is missing, one is unknown, or of another type.
    """
    type_by_name = {known.name: known.dataType for known in SCHEMA}
    missing = [name for name in NEEDED if name not in schema.fieldNames()]
    if missing:
        raise ConfigurationError(
            f"the rows have no column {missing[0]!r}: the sink needs {', '.join(NEEDED)} as the "
            "source gives them"
        )
    for given in schema:
        if given.name not in type_by_name:
            raise ConfigurationError(
                f"the sink has no use for column {given.name!r}: handlers get events, made of "
                f"{', '.join(type_by_name)}. Put it into body, or drop it"
            )
        is_text_body = given.name == "body" and isinstance(given.dataType, StringType)
        if given.dataType != type_by_name[given.name] and not is_text_body:
            raise ConfigurationError(
                f"column {given.name!r} is of type {given.dataType.simpleString()}, and the sink "
                f"needs {type_by_name[given.name].simpleString()}: convert it before the sink"
            )


class ArrowRows(Rows):
    """Rows of an Arrow batch; they become events only on demand."""

    columns: pa.RecordBatch

    def __init__(self, columns: pa.RecordBatch) -> None:
        self.columns = columns
        self.numbers = columns.column("sequenceNumber").to_pylist()
        if None in self.numbers:
            raise ConfigurationError("a row has no sequenceNumber: the sink needs the source's")

    @property
    def last_offset(self) -> str:
        """The offset of the last row."""
        offset = self.columns.column("offset")[-1].as_py()
        if not offset:
            raise ConfigurationError("a row has no offset: the sink needs the source's")
        return str(offset)

    def only(self, is_wanted: Sequence[bool]) -> "ArrowRows":
        """Some of them."""
        return ArrowRows(self.columns.filter(pa.array(is_wanted)))

    def events(self) -> Sequence[ReceivedEvent]:
        """All of them as events."""
        return _events(self.columns)


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[str, ArrowRows]]:
    """Give the rows of a batch in order: those of one partition, as far as they are together."""
    partitions = batch.column("partition").to_pylist()
    begin = 0
    for index in range(1, len(partitions) + 1):
        if index == len(partitions) or partitions[index] != partitions[begin]:
            if partitions[begin] is None:
                raise ConfigurationError("a row has no partition: the sink needs the source's")
            yield partitions[begin], ArrowRows(batch.slice(begin, index - begin))
            begin = index


def _events(batch: pa.RecordBatch) -> list[ReceivedEvent]:
    numbers = batch.column("sequenceNumber").to_pylist()
    offsets = batch.column("offset").to_pylist()
    # As numbers: Arrow's own way to datetime objects takes ten times as long.
    times = batch.column("enqueuedTime").cast(pa.int64()).to_pylist()
    bodies = batch.column("body").cast(pa.binary()).to_pylist()
    if None in numbers or None in offsets or None in times:
        raise ConfigurationError(
            "a row has no sequenceNumber, offset or enqueuedTime: the sink needs the source's"
        )
    names = batch.schema.names
    keys = _texts(batch, "partitionKey")
    if "properties" not in names and "systemProperties" not in names:
        return [
            ReceivedEvent(
                body=body or b"",
                sequence_number=number,
                offset=offset,
                enqueued_time=EPOCH + timedelta(microseconds=time),
                partition_key=key,
            )
            for body, number, offset, time, key in zip(
                bodies, numbers, offsets, times, keys, strict=False
            )
        ]
    publishers = _texts(batch, "publisher")
    columns = (bodies, numbers, offsets, times, keys, publishers)
    maps = (_maps(batch, "properties"), _maps(batch, "systemProperties"))
    return [_whole(*values) for values in zip(*columns, *maps, strict=False)]


def _whole(  # noqa: PLR0917 - one value of each column
    body: bytes | None,
    number: int,
    offset: str,
    time: int,
    key: str | None,
    publisher: str | None,
    properties: Mapping[str, object],
    system: dict[str, object],
) -> ReceivedEvent:
    """One event with all that the publisher and the broker attached."""
    if publisher is not None:
        system["x-opt-publisher"] = publisher
    return ReceivedEvent(
        body=body or b"",
        sequence_number=number,
        offset=offset,
        enqueued_time=EPOCH + timedelta(microseconds=time),
        partition_key=key,
        properties=properties,
        system_properties=system,
        content_type=_text(system.get("content-type")),
        correlation_id=_text(system.get("correlation-id")),
        message_id=_text(system.get("message-id")),
    )


def _texts(batch: pa.RecordBatch, name: str) -> Iterable[str | None]:
    return batch.column(name).to_pylist() if name in batch.schema.names else repeat(None)


def _maps(batch: pa.RecordBatch, name: str) -> Iterable[dict[str, object]]:
    if name not in batch.schema.names:
        return ({} for _ in range(batch.num_rows))
    return (
        {key: from_json(value) for key, value in entries or ()}
        for entries in batch.column(name).to_pylist()
    )


def from_json(text: str | None) -> object:
    """A property's value as the publisher gave it; what is no JSON was put there by the query."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return base64.b64decode(value["base64"])
    return value


def _text(value: object) -> str | None:
    return None if value is None else str(value)

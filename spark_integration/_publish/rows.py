"""Checks the columns of rows that are to be published, and converts rows to events."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, DataType, MapType, StringType, StructType

from eventproc.errors import ConfigurationError, EventRefusedError
from eventproc.models import OutgoingEvent
from spark_integration._publish.properties import PropertyValues, Value, from_json

_TEXTS: Final = MapType(StringType(), StringType())

TYPES: Final = {
    "body": (BinaryType(), StringType()),
    "partition": (StringType(),),
    "partitionKey": (StringType(),),
    "properties": (_TEXTS,),
}
"""The columns and their types. Only ``body`` is required."""


def check_columns(schema: StructType) -> None:
    """Check that rows with these columns can be published.

    Raises:
        ConfigurationError: there is no ``body``, or a column is unknown or of another type.
    """
    if "body" not in schema.fieldNames():
        raise ConfigurationError(
            f"the rows have no column 'body', which is what is published: they have "
            f"{', '.join(schema.fieldNames()) or 'none'}"
        )
    for given in schema:
        if given.name not in TYPES:
            raise ConfigurationError(
                f"column {given.name!r} cannot be published: events are made of "
                f"{', '.join(TYPES)}. Put it into body or properties, or drop it"
            )
        if not any(_is_like(given.dataType, wanted) for wanted in TYPES[given.name]):
            names = " or ".join(wanted.simpleString() for wanted in TYPES[given.name])
            raise ConfigurationError(
                f"column {given.name!r} is of type {given.dataType.simpleString()}, and publishing "
                f"needs {names}: cast it"
            )


def _is_like(given: DataType, wanted: DataType) -> bool:
    """Whether the types are equal, apart from whether a map's values may be null."""
    same: bool = given.simpleString() == wanted.simpleString()
    return same


def events_of(batch: pa.RecordBatch, values: PropertyValues) -> list[OutgoingEvent]:
    """Return the rows as events, in order.

    Raises:
        EventRefusedError: a property of a row cannot be read as *values* requires.
    """
    bodies = batch.column("body").cast(pa.binary()).to_pylist()
    rows = zip(
        bodies,
        _column(batch, "partition"),
        _column(batch, "partitionKey"),
        _properties(batch, values),
        strict=True,
    )
    return [
        OutgoingEvent(body=body, partition_id=partition, partition_key=key, properties=properties)
        for body, partition, key, properties in rows
    ]


def _column(batch: pa.RecordBatch, name: str) -> Sequence[str | None]:
    if name not in batch.schema.names:
        return [None] * batch.num_rows
    found: list[str | None] = batch.column(name).to_pylist()
    return found


def _properties(batch: pa.RecordBatch, values: PropertyValues) -> Iterator[dict[str, Value]]:
    read: Callable[[str], Value] = from_json if values is PropertyValues.JSON else str
    maps: Sequence[Sequence[tuple[str, str | None]] | None]
    maps = (
        batch.column("properties").to_pylist()
        if "properties" in batch.schema.names
        else [None] * batch.num_rows
    )
    for index, entries in enumerate(maps):
        properties: dict[str, Value] = {}
        for name, value in entries or ():
            try:
                properties[name] = None if value is None else read(value)
            except ValueError as error:
                raise EventRefusedError(index, f"its property {name!r} is {error}") from error
        yield properties

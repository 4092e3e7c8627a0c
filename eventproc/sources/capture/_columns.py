"""Columns of Capture files, without an event for each record."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, overload

import pyarrow as pa

from eventproc.columns import COLUMNS, schema_of
from eventproc.columns._events import map_array, without_own_column
from eventproc.columns._schema import PUBLISHER
from eventproc.models import EventBatch, ReceivedEvent
from eventproc.sources._amqp.fields import to_text
from eventproc.sources.capture._avro import Record
from eventproc.sources.capture._events import (
    ENQUEUED_MS,
    event_of,
    properties_of,
    system_properties_of,
    time_of,
)


class CapturedBatch(EventBatch):
    """Records of a partition, in order."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "CapturedBatch": ...
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | CapturedBatch":
        if isinstance(index, slice):
            if index.step not in {None, 1}:
                raise ValueError("a batch has no slices with a step")
            return CapturedBatch(self._records[index])
        return event_of(self._records[index])

    @property
    def body_byte_count(self) -> int:
        return sum(len(record["Body"] or b"") for record in self._records)

    def columns(self, names: Sequence[str], partition_id: str) -> pa.RecordBatch:
        arrays = [
            pa.array([partition_id] * len(self._records), COLUMNS[name])
            if name == "partition"
            else _ARRAYS[name](self._records)
            for name in names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema_of(names))


def _field(
    column: str, value_of: Callable[[Record], Any]
) -> Callable[[Sequence[Record]], pa.Array]:
    return lambda records: pa.array(list(map(value_of, records)), COLUMNS[column])


def _annotation(column: str, name: str) -> Callable[[Sequence[Record]], pa.Array]:
    return _field(column, lambda record: to_text((record["SystemProperties"] or {}).get(name)))


def _times(records: Sequence[Record]) -> pa.Array:
    """Return the times; they are made one by one only if the files have them in seconds."""
    found = [(record["SystemProperties"] or _NOTHING).get(ENQUEUED_MS) for record in records]
    if all(isinstance(value, int) for value in found):
        milliseconds = pa.array(found, pa.timestamp("ms", tz="UTC"))
        return milliseconds.cast(COLUMNS["enqueuedTime"])
    return pa.array(list(map(time_of, records)), COLUMNS["enqueuedTime"])


_NOTHING: Final[Mapping[str, Any]] = {}

_ARRAYS: Final[Mapping[str, Callable[[Sequence[Record]], pa.Array]]] = {
    "body": _field("body", lambda record: record["Body"] or b""),
    "offset": _field("offset", itemgetter("Offset")),
    "sequenceNumber": _field("sequenceNumber", itemgetter("SequenceNumber")),
    "enqueuedTime": _times,
    "publisher": _annotation("publisher", PUBLISHER),
    "partitionKey": _annotation("partitionKey", "x-opt-partition-key"),
    "properties": lambda records: map_array(list(map(properties_of, records))),
    "systemProperties": lambda records: map_array(
        [without_own_column(system_properties_of(record)) for record in records]
    ),
}

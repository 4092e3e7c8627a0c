"""Columns of Capture files, without an event for each record."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from eventproc.columns import COLUMNS
from eventproc.columns._events import made_of, map_array, without_own_column
from eventproc.columns._schema import PUBLISHER
from eventproc.models import EventBatch
from eventproc.sources._amqp.fields import to_text
from eventproc.sources.capture._events import (
    ENQUEUED_MS,
    CapturedEvents,
    properties_of,
    system_properties_of,
    time_of,
)


class CapturedBatch(CapturedEvents, EventBatch):
    """Events of a partition, also as columns."""

    __slots__ = ()

    def columns(self, names: Sequence[str], partition_id: str) -> pa.RecordBatch:
        return made_of(self, _ARRAYS, names, partition_id)


def _annotations(batch: CapturedBatch, name: str) -> pa.Array:
    return pa.array([to_text(each.get(name)) for each in batch.system], pa.string())


def _times(batch: CapturedBatch) -> pa.Array:
    """Return the times; they are made one by one only if the files have them in seconds."""
    found = [each.get(ENQUEUED_MS) for each in batch.system]
    if set(map(type, found)) == {int}:
        milliseconds = pa.array(found, pa.timestamp("ms", tz="UTC"))
        return milliseconds.cast(COLUMNS["enqueuedTime"])
    times = list(map(time_of, batch.numbers, batch.time_texts, batch.system))
    return pa.array(times, COLUMNS["enqueuedTime"])


def _system_properties(batch: CapturedBatch) -> pa.Array:
    found = map(system_properties_of, batch.system, batch.properties)
    return map_array(list(map(without_own_column, found)))


_ARRAYS: Final[Mapping[str, Callable[[CapturedBatch], pa.Array]]] = {
    "body": lambda batch: pa.array([body or b"" for body in batch.bodies], pa.binary()),
    "offset": lambda batch: pa.array(batch.offsets, pa.string()),
    "sequenceNumber": lambda batch: pa.array(batch.numbers, pa.int64()),
    "enqueuedTime": _times,
    "publisher": lambda batch: _annotations(batch, PUBLISHER),
    "partitionKey": lambda batch: _annotations(batch, "x-opt-partition-key"),
    "properties": lambda batch: map_array(list(map(properties_of, batch.properties))),
    "systemProperties": _system_properties,
}

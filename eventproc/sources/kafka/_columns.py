"""Messages of one partition as a batch whose values are an Arrow array."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventproc._core.delivery.offset_format import KAFKA_OFFSET_PREFIX
from eventproc.columns import COLUMNS, schema_of, to_columns
from eventproc.sources.kafka._batch import KafkaBatch, joined_details
from eventproc.sources.kafka._event import LAST_MS, Details, Message, partition_key

BYTES_MAX: Final = 2**31 - 1
"""Most bytes of values in one array: its offsets have 32 bits."""


class ColumnBatch(KafkaBatch):
    """A batch whose values are put into an array when they are read, while the cache has them.

    A tombstone is a null.
    """

    __slots__ = ()
    _values: pa.BinaryArray

    @classmethod
    def of(cls, messages: Sequence[Message]) -> KafkaBatch:
        """Return a batch of these messages."""
        return cls.packed(KafkaBatch.of(messages))

    @classmethod
    def packed(cls, batch: KafkaBatch) -> "ColumnBatch":
        """Return a batch of the same messages."""
        if isinstance(batch, cls):
            return batch
        return cls(pa.array(batch.values(slice(None)), COLUMNS["body"]), batch.details)

    @classmethod
    def joined(cls, batches: Sequence[KafkaBatch]) -> KafkaBatch:
        """Return one batch of these; one that no array could hold keeps its values apart."""
        if sum(batch.body_byte_count for batch in batches) > BYTES_MAX:
            return KafkaBatch.joined(batches)
        arrays = [cls.packed(batch)._values for batch in batches]  # noqa: SLF001 - of this class
        return cls(pa.concat_arrays(arrays), joined_details([batch.details for batch in batches]))

    def _part(self, rows: slice) -> KafkaBatch:
        return ColumnBatch(self._values[rows], self.details.part(rows))

    def values(self, rows: slice) -> Sequence[bytes | None]:
        """Return the values of some messages."""
        values: list[bytes | None] = self._values[rows].to_pylist()
        return values

    @property
    def body_byte_count(self) -> int:
        values = self._values
        ends = np.frombuffer(values.buffers()[1], np.int32)
        return int(ends[values.offset + len(values)] - ends[values.offset])

    @property
    def bodies(self) -> pa.Array:
        """The column of bodies: that of a tombstone is empty."""
        return self._values.fill_null(b"") if self._values.null_count else self._values

    def columns(self, names: Sequence[str], partition_id: str) -> pa.RecordBatch:
        arrays = {name: _ARRAYS[name](self.details) for name in names if name in _ARRAYS}
        if "body" in names:
            arrays["body"] = self.bodies
        if "partition" in names:
            arrays["partition"] = pa.repeat(
                pa.scalar(partition_id, COLUMNS["partition"]), len(self)
            )
        if others := [name for name in names if name not in arrays]:
            of_events = to_columns(tuple(self), others, partition_id)
            arrays |= {name: of_events.column(name) for name in others}
        return pa.RecordBatch.from_arrays([arrays[name] for name in names], schema=schema_of(names))


def _numbers(details: Details) -> pa.Array:
    numbers = details.numbers
    if isinstance(numbers, range):
        return _of_integers(np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64))
    return pa.array(numbers, COLUMNS["sequenceNumber"])


def _offsets(details: Details) -> pa.Array:
    numbers = _numbers(details).cast(COLUMNS["offset"])
    return pc.binary_join_element_wise(KAFKA_OFFSET_PREFIX, numbers, "")


def _times(details: Details) -> pa.Array:
    times_ms = np.clip(np.array(details.times_ms, np.int64), 0, LAST_MS)
    return _of_integers(times_ms * 1000).cast(COLUMNS["enqueuedTime"])


def _of_integers(integers: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    """Return them as an array. ``pa.array`` would import ``numpy.ma`` for it, on the event loop."""
    return pa.Array.from_buffers(pa.int64(), len(integers), [None, pa.py_buffer(integers)])


def _keys(details: Details) -> pa.Array:
    return pa.array(list(map(partition_key, details.keys)), COLUMNS["partitionKey"])


_ARRAYS: Final[Mapping[str, Callable[[Details], pa.Array]]] = {
    "offset": _offsets,
    "sequenceNumber": _numbers,
    "enqueuedTime": _times,
    "partitionKey": _keys,
}
"""How a column is built without events; those that are missing are built of events."""

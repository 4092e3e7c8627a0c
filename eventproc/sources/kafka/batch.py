"""Messages of one partition as a batch: the usual columns are built without an event for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventproc.columns import COLUMNS, schema_of, to_columns
from eventproc.models import EventBatch, ReceivedEvent
from eventproc.sources.kafka.event import KafkaEvent, Message, enqueued_ms, partition_key
from eventproc.sources.kafka.position import OFFSETS


class KafkaBatch(EventBatch):
    """The messages of one ``receive``."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "KafkaBatch": ...
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | KafkaBatch":
        if isinstance(index, slice):
            return KafkaBatch(self._messages[index])
        return KafkaEvent(self._messages[index])

    @property
    def body_byte_count(self) -> int:
        return sum(map(len, self._messages))

    def columns(self, names: Sequence[str], partition_id: str) -> pa.RecordBatch:
        arrays = {name: _ARRAYS[name](self._messages) for name in names if name in _ARRAYS}
        if "partition" in names:
            arrays["partition"] = pa.array([partition_id] * len(self), COLUMNS["partition"])
        if others := [name for name in names if name not in arrays]:
            of_events = to_columns(tuple(self), others, partition_id)
            arrays |= {name: of_events.column(name) for name in others}
        return pa.RecordBatch.from_arrays([arrays[name] for name in names], schema=schema_of(names))


def _bodies(messages: Sequence[Message]) -> pa.Array:
    bodies = pa.array([message.value() for message in messages], COLUMNS["body"])
    return bodies.fill_null(b"") if bodies.null_count else bodies  # Tombstones have none.


def _numbers(messages: Sequence[Message]) -> pa.Array:
    if messages:
        first, last = messages[0].offset(), messages[-1].offset()
        if last - first == len(messages) - 1:  # Offsets rise, so these have no gaps.
            return pa.array(np.arange(first, last + 1), COLUMNS["sequenceNumber"])
    return pa.array([message.offset() for message in messages], COLUMNS["sequenceNumber"])


def _offsets(messages: Sequence[Message]) -> pa.Array:
    numbers = _numbers(messages).cast(COLUMNS["offset"])
    return pc.binary_join_element_wise(OFFSETS.prefix, numbers, "")


def _field(column: str, value_of: Callable[[Message], object]) -> Callable[..., pa.Array]:
    return lambda messages: pa.array(list(map(value_of, messages)), COLUMNS[column])


def _times(messages: Sequence[Message]) -> pa.Array:
    microseconds = [enqueued_ms(message) * 1000 for message in messages]
    return pa.array(microseconds, pa.int64()).cast(COLUMNS["enqueuedTime"])


_ARRAYS: Final[Mapping[str, Callable[[Sequence[Message]], pa.Array]]] = {
    "body": _bodies,
    "offset": _offsets,
    "sequenceNumber": _numbers,
    "enqueuedTime": _times,
    "partitionKey": _field("partitionKey", partition_key),
}
"""How a column is built from the messages alone; the others are those of the events."""

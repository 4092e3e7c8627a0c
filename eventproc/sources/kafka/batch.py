"""Messages of one partition as a batch: the usual columns are built without an event for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, overload

import pyarrow as pa

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


def _field(column: str, value_of: Callable[[Message], object]) -> Callable[..., pa.Array]:
    return lambda messages: pa.array(list(map(value_of, messages)), COLUMNS[column])


def _times(messages: Sequence[Message]) -> pa.Array:
    microseconds = [enqueued_ms(message) * 1000 for message in messages]
    return pa.array(microseconds, pa.int64()).cast(COLUMNS["enqueuedTime"])


_ARRAYS: Final[Mapping[str, Callable[[Sequence[Message]], pa.Array]]] = {
    "body": _field("body", lambda message: message.value() or b""),
    "offset": _field("offset", lambda message: f"{OFFSETS.prefix}{message.offset()}"),
    "sequenceNumber": _field("sequenceNumber", lambda message: message.offset()),
    "enqueuedTime": _times,
    "partitionKey": _field("partitionKey", partition_key),
}
"""How a column is built from the messages alone; the others are those of the events."""

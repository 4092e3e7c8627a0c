"""Batches of encoded events, whose columns are built from all events at once, and their buffer."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast, overload

import numpy as np
import pyarrow as pa

from eventproc.columns import COLUMNS, schema_of, to_columns
from eventproc.columns._schema import PUBLISHER, WITH_OWN_COLUMN
from eventproc.models import REPLAYED_FROM_PROPERTY, EventBatch, ReceivedEvent
from eventproc.sources._amqp.columns import (
    Buffer,
    EncodedMessages,
    Field,
    Group,
    Indexes,
    Pattern,
    Patterns,
    joined,
)
from eventproc.sources._amqp.columns.forms import (
    ANNOTATION,
    APPLICATION_MAP,
    BODY,
    PROPERTIES_LIST,
    list_pattern,
    map_pattern,
    message_pattern,
)
from eventproc.sources._amqp.columns.values import (
    TEXTS,
    IrregularError,
    binaries,
    integers,
    map_column,
    repeated,
    texts,
)
from eventproc.sources._amqp.fields import PROPERTY_NAMES, REPLAYED_FROM_BYTES
from eventproc.sources.eventhubs._direct_path.lazy_event import EventReader
from eventproc.sources.eventhubs._event import ENQUEUED_TIME, OFFSET, PARTITION_KEY, SEQUENCE_NUMBER

_NUMBER: Final = ANNOTATION + SEQUENCE_NUMBER.decode()
_OFFSET: Final = ANNOTATION + OFFSET.decode()
_TIME: Final = ANNOTATION + ENQUEUED_TIME.decode()
_KEY: Final = ANNOTATION + PARTITION_KEY.decode()
_PUBLISHER: Final = ANNOTATION + PUBLISHER
_OWN: Final = frozenset(ANNOTATION + name for name in WITH_OWN_COLUMN)

_NUMBERS: Final = frozenset({0x55, 0x81, 0x83})
_NULL: Final = 0x40
_NO_ITEMS: Final = 0x45
_TIME_MIN_MS, _TIME_MAX_MS = -62_135_596_800_000, 253_402_300_799_999
"""What a ``datetime`` can be: the years 1 to 9999."""


class ColumnReader:
    """Reads the events of one link as batches."""

    def __init__(self) -> None:
        self._messages = Patterns(_event_pattern)
        self.maps: Final = Patterns(map_pattern)
        self.lists: Final = Patterns(lambda payload: list_pattern(payload, PROPERTY_NAMES))
        self._events = EventReader()

    def read(self, parts: Iterable[EncodedMessages]) -> "ColumnBatch":
        """Return the events of these messages.

        Raises:
            SourceRejectedError: a message has no position in a partition, so it is not an event.
        """
        buffer, begins, ends = joined(parts)
        groups, left = self._messages.groups(buffer, begins, ends)
        payloads = EncodedMessages(buffer.raw, begins, ends)
        events = self.events(map(payloads.__getitem__, left.tolist()))
        decoded = _Decoded(
            self, buffer, payloads, groups, dict(zip(left.tolist(), events, strict=True))
        )
        for group in groups:
            sizes = group.fields[_OFFSET].sizes
            assert not isinstance(sizes, int), "texts have a size each"
            for place in np.flatnonzero(sizes == 0)[:1]:
                self.events([payloads[int(group.rows[place])]])  # This raises the error.
        return ColumnBatch(decoded, 0, len(payloads))

    def events(self, payloads: Iterable[bytes]) -> list[ReceivedEvent]:
        """Return the events one by one."""
        return self._events.read(payloads)


@dataclass(frozen=True, slots=True, eq=False)
class _Decoded:
    """The messages of one call of ``receive``, and where their fields are."""

    reader: ColumnReader
    buffer: Buffer
    payloads: EncodedMessages
    groups: Sequence[Group]
    irregular: Mapping[int, ReceivedEvent]
    """The events that match no pattern, by row."""


class ColumnBatch(EventBatch):
    """Some successive events of one call of ``receive``."""

    def __init__(self, decoded: _Decoded, start: int, stop: int) -> None:
        self._decoded = decoded
        self._start = start
        self._stop = stop

    def __len__(self) -> int:
        return self._stop - self._start

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "ColumnBatch": ...
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | ColumnBatch":
        rows = range(self._start, self._stop)[index]
        if isinstance(rows, int):
            return self._event(rows)
        if rows.step != 1:
            raise ValueError("a batch has no slices with a step")
        return ColumnBatch(self._decoded, rows.start, rows.stop)

    def __iter__(self) -> Iterator[ReceivedEvent]:
        return map(self._event, range(self._start, self._stop))

    @property
    def body_byte_count(self) -> int:
        sizes = [group.fields[BODY].sizes for group in self._groups()]
        others = (len(event.body) for event in self._irregular().values())
        return sum(int(np.sum(each)) for each in sizes) + sum(others)

    def columns(self, names: Sequence[str], partition_id: str) -> pa.RecordBatch:
        groups, irregular = self._groups(), self._irregular()
        rows = [group.rows for group in groups]
        if irregular:
            rows.append(np.fromiter(irregular, np.intp, len(irregular)))
        arrays = []
        for name in names:
            if name == "partition":
                arrays.append(repeated(partition_id, len(self)))
                continue
            pieces = [self._column(name, group) for group in groups]
            if irregular:
                pieces.append(_of_events(name, list(irregular.values())))
            arrays.append(_in_order(pieces, rows, COLUMNS[name]))
        return pa.RecordBatch.from_arrays(arrays, schema=schema_of(names))

    def _event(self, row: int) -> ReceivedEvent:
        decoded = self._decoded
        found = decoded.irregular.get(row)
        return found or decoded.reader.events([decoded.payloads[row]])[0]

    def _groups(self) -> list[Group]:
        """Return the groups with the rows of this batch."""
        if len(self) == len(self._decoded.payloads):
            return list(self._decoded.groups)
        parts = []
        for group in self._decoded.groups:
            start, stop = np.searchsorted(group.rows, (self._start, self._stop)).tolist()
            if start < stop:
                parts.append(group.part(slice(start, stop)))
        return parts

    def _irregular(self) -> dict[int, ReceivedEvent]:
        rows = range(self._start, self._stop)
        return {row: event for row, event in self._decoded.irregular.items() if row in rows}

    def _column(self, name: str, group: Group) -> pa.Array:
        """Return a column of the rows of a group."""
        decoded = self._decoded
        try:
            return _COLUMN_OF[name](decoded, group)
        except IrregularError:
            return _of_events(name, [self._event(row) for row in group.rows.tolist()])


def _event_pattern(payload: bytes) -> Pattern | None:
    """Return the pattern of an event; ``None`` unless all fields have their usual types."""
    pattern = message_pattern(payload)
    if pattern is None:
        return None
    is_usual = (
        pattern.constructor_of(_NUMBER) in _NUMBERS
        and pattern.constructor_of(_TIME) in _NUMBERS
        and pattern.constructor_of(_OFFSET) in TEXTS
    )
    return pattern if is_usual else None


def _of_events(name: str, events: Sequence[ReceivedEvent]) -> pa.Array:
    return to_columns(events, (name,), "").column(0)


def _in_order(pieces: Sequence[pa.Array], rows: Sequence[Indexes], kind: pa.DataType) -> pa.Array:
    """Join the pieces of a column in the order of rows; ``rows[i]`` are those of ``pieces[i]``."""
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return pa.array([], kind)
    return pa.concat_arrays(pieces).take(pa.array(np.argsort(np.concatenate(rows))))


def _times(decoded: _Decoded, group: Group) -> pa.Array:
    spans = integers(decoded.buffer, group.fields[_TIME]).astype(np.int64)
    if len(spans) and not _TIME_MIN_MS <= spans.min() <= spans.max() <= _TIME_MAX_MS:
        raise IrregularError
    return pa.array(spans * 1000).view(COLUMNS["enqueuedTime"])


def _text_if_any(name: str) -> "_ColumnOf":
    def column(decoded: _Decoded, group: Group) -> pa.Array:
        field = group.fields.get(name)
        if field is None or field.constructor == _NULL:
            return pa.nulls(len(group.rows), pa.string())
        return texts(decoded.buffer, field)

    return column


def _properties(decoded: _Decoded, group: Group) -> pa.Array:
    content = group.fields.get(APPLICATION_MAP)
    if content is None:
        return map_column(decoded.buffer, {}, len(group.rows))

    def fields_of(part: Group) -> Mapping[str, Field]:
        if REPLAYED_FROM_PROPERTY in part.fields:
            raise IrregularError
        return part.fields

    return _maps(decoded, content, decoded.reader.maps, fields_of)


def _system_properties(decoded: _Decoded, group: Group) -> pa.Array:
    if APPLICATION_MAP in group.fields and REPLAYED_FROM_BYTES in decoded.buffer.raw:
        raise IrregularError
    own = {
        name.removeprefix(ANNOTATION): field
        for name, field in group.fields.items()
        if name.startswith(ANNOTATION) and name not in _OWN
    }
    content = group.fields.get(PROPERTIES_LIST)
    if content is None or content.constructor == _NO_ITEMS:
        return map_column(decoded.buffer, own, len(group.rows))

    def fields_of(part: Group) -> Mapping[str, Field]:
        if own.keys() & part.fields.keys():
            raise IrregularError
        return {name: field.part(part.rows) for name, field in own.items()} | dict(part.fields)

    return _maps(decoded, content, decoded.reader.lists, fields_of)


def _maps(
    decoded: _Decoded,
    content: Field,
    patterns: Patterns,
    fields_of: Callable[[Group], Mapping[str, Field]],
) -> pa.Array:
    """Return a map for each encoded map or list."""
    assert not isinstance(content.sizes, int), "maps and lists have a size each"
    width = 1 if content.constructor >> 4 == _ONE_BYTE_OF_SIZE else 4
    groups, left = patterns.groups(
        decoded.buffer, content.at - (1 + width), content.at + content.sizes
    )
    if len(left):
        raise IrregularError
    pieces = [map_column(decoded.buffer, fields_of(part), len(part.rows)) for part in groups]
    return _in_order(pieces, [part.rows for part in groups], COLUMNS["properties"])


_ONE_BYTE_OF_SIZE: Final = 0xC

_ColumnOf = Callable[[_Decoded, Group], pa.Array]
"""Makes a column of a group of rows. Raises ``IrregularError`` if single events are needed."""

_COLUMN_OF: Final[Mapping[str, _ColumnOf]] = {
    "body": lambda decoded, group: binaries(decoded.buffer, group.fields[BODY]),
    "offset": lambda decoded, group: texts(decoded.buffer, group.fields[_OFFSET]),
    "sequenceNumber": lambda decoded, group: pa.array(
        integers(decoded.buffer, group.fields[_NUMBER]).astype(np.int64)
    ),
    "enqueuedTime": _times,
    "publisher": _text_if_any(_PUBLISHER),
    "partitionKey": _text_if_any(_KEY),
    "properties": _properties,
    "systemProperties": _system_properties,
}


BATCH_BYTES_MAX: Final = 256 * 1024 * 1024
"""Most bytes in one batch, except for a single part: Arrow's indexes have 32 bits."""


class ColumnBuffer:
    """A buffer that returns an ``EventBatch``."""

    def __init__(self) -> None:
        self._parts: deque[EncodedMessages] = deque()
        self._count = 0
        self._reader = ColumnReader()

    def __len__(self) -> int:
        return self._count

    def add(self, payloads: Sequence[bytes]) -> int:
        if not isinstance(payloads, EncodedMessages):
            payloads = EncodedMessages.of(payloads)
        self._parts.append(payloads)
        self._count += len(payloads)
        return payloads.byte_count

    def take(self, count: int) -> tuple[Sequence[ReceivedEvent], int, int]:
        parts: list[EncodedMessages] = []
        taken_count = byte_count = 0
        while self._parts and taken_count < count and byte_count < BATCH_BYTES_MAX:
            part = self._parts.popleft()
            if len(part) > count - taken_count:
                self._parts.appendleft(part[count - taken_count :])
                part = part[: count - taken_count]
            parts.append(part)
            taken_count += len(part)
            byte_count += part.byte_count
        self._count -= taken_count
        events = self._reader.read(parts) if parts else ()
        return cast("Sequence[ReceivedEvent]", events), taken_count, byte_count

    def clear(self) -> None:
        self._parts.clear()
        self._count = 0

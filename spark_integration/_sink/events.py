"""Events over Arrow columns, whose fields are converted to Python objects on first access.

Rule: no Python statement runs once for each event before a handler gets it. ``map`` and ``deque``
fill the slots, and the first access to a field converts its whole column.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby, repeat
from operator import attrgetter
from typing import Any, Final, cast

import pyarrow as pa

from eventproc.columns import from_json
from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Columns:
    """The columns of a batch as lists, each converted once, on first access."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._lists: dict[str, list[Any]] = {}

    def at(self, name: str, row: int) -> Any:  # noqa: ANN401 - as the column is
        """Return the value of a row; ``None`` if the batch does not have the column."""
        if name not in self._lists:
            self._lists[name] = self._converted(name)
        return self._lists[name][row]

    def taken(self, rows: Sequence[int]) -> pa.RecordBatch:
        """Return these rows."""
        return self._batch.take(pa.array(rows))

    def _converted(self, name: str) -> list[Any]:
        if name not in self._batch.schema.names:
            return [None] * self._batch.num_rows
        column = self._batch.column(name)
        if pa.types.is_timestamp(column.type):
            # Integers: Arrow's own conversion to datetime objects takes ten times as long.
            column = column.cast(pa.int64())
        values: list[Any] = column.to_pylist()
        return values


class RowEvent(ReceivedEvent):
    """A ``ReceivedEvent`` over a row. Created only by ``events_of``.

    ``body`` and ``sequence_number`` are set at once; the slots of the other fields are filled on
    first access.
    """

    __slots__ = ("_columns", "_row")

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the field is
        """Fill an empty slot; Python calls this only while it is empty."""
        make = _MAKERS.get(name)
        if make is None:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        value = make(self._columns, self._row)
        getattr(RowEvent, name).__set__(self, value)
        return value


def _system(columns: _Columns, row: int) -> dict[str, object]:
    found = _from_map(columns.at("systemProperties", row))
    publisher = columns.at("publisher", row)
    if publisher is not None:
        found["x-opt-publisher"] = publisher
    return found


def _system_text(name: str) -> Callable[[_Columns, int], str | None]:
    def make(columns: _Columns, row: int) -> str | None:
        value = _system(columns, row).get(name)
        return None if value is None else str(value)

    return make


_MAKERS: Final[Mapping[str, Callable[[_Columns, int], object]]] = {
    "offset": lambda columns, row: columns.at("offset", row),
    "enqueued_time": lambda columns, row: (
        EPOCH + timedelta(microseconds=columns.at("enqueuedTime", row))
    ),
    "partition_key": lambda columns, row: columns.at("partitionKey", row),
    "properties": lambda columns, row: _from_map(columns.at("properties", row)),
    "system_properties": _system,
    "content_type": _system_text("content-type"),
    "correlation_id": _system_text("correlation-id"),
    "message_id": _system_text("message-id"),
}


def events_of(batch: pa.RecordBatch, numbers: Sequence[int]) -> list[ReceivedEvent]:
    """Return the rows of a batch as events; ``numbers`` are their sequence numbers.

    Raises:
        ConfigurationError: a row has no offset or no enqueued time.
    """
    for name in ("offset", "enqueuedTime"):
        if batch.column(name).null_count:
            raise ConfigurationError(f"a row has no {name}: the sink needs the source's values")
    bodies = batch.column("body")
    if bodies.null_count:
        bodies = bodies.fill_null("" if pa.types.is_string(bodies.type) else b"")
    events = list(map(object.__new__, repeat(RowEvent, batch.num_rows)))
    _fill("body", events, bodies.cast(pa.binary()).to_pylist())
    _fill("sequence_number", events, numbers)
    _fill("_columns", events, repeat(_Columns(batch)))
    _fill("_row", events, range(batch.num_rows))
    return events  # type: ignore[return-value]  # object.__new__ says object


def batch_of(events: Sequence[ReceivedEvent]) -> pa.RecordBatch:
    """Return the rows of events that ``events_of`` made, as one batch; at least one."""
    parts = [
        columns.taken([event._row for event in found])  # noqa: SLF001 - of this module
        for columns, found in groupby(cast(Sequence[RowEvent], events), attrgetter("_columns"))
    ]
    (batch,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
    return batch


def _fill(name: str, events: Iterable[object], values: Iterable[object]) -> None:
    """Set a slot of each event, past the check that makes events immutable."""
    deque(map(getattr(RowEvent, name).__set__, events, values), maxlen=0)


def _from_map(entries: Sequence[tuple[str, str | None]] | None) -> dict[str, object]:
    return {key: from_json(value) for key, value in entries or ()}

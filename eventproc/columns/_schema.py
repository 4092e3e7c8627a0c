"""The names and types of the columns, and values of properties as JSON, which two of them have."""

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import pyarrow as pa

from eventproc.errors import ConfigurationError

_TEXTS: Final = pa.map_(pa.string(), pa.string())

COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "body": pa.binary(),
    "partition": pa.string(),
    "offset": pa.string(),
    "sequenceNumber": pa.int64(),
    "enqueuedTime": pa.timestamp("us", tz="UTC"),
    "publisher": pa.string(),
    "partitionKey": pa.string(),
    "properties": _TEXTS,
    "systemProperties": _TEXTS,
}
"""The type of each column, by name, in the order of the Scala connector for Event Hubs."""

PUBLISHER: Final = "x-opt-publisher"
"""The system property with the publisher's name, which has a column of its own."""

WITH_OWN_COLUMN: Final = frozenset(
    {
        "x-opt-sequence-number",
        "x-opt-offset",
        "x-opt-enqueued-time",
        "x-opt-partition-key",
        PUBLISHER,
    }
)
"""Annotations that are left out of ``systemProperties``, because each is a column of its own."""


def check_names(names: Iterable[str]) -> None:
    """Check that each name is that of a column, and that none is given twice.

    Raises:
        ConfigurationError: a name is unknown or given twice; the message lists the columns.
    """
    seen: set[str] = set()
    for name in names:
        if name not in COLUMNS:
            raise ConfigurationError(f"there is no column {name!r}: choose of {', '.join(COLUMNS)}")
        if name in seen:
            raise ConfigurationError(f"column {name!r} is named twice: name it once")
        seen.add(name)


def schema_of(names: Iterable[str]) -> pa.Schema:
    """Return the Arrow schema of these columns."""
    return pa.schema([pa.field(name, COLUMNS[name]) for name in names])


def to_json(value: object) -> str:
    """Return a property's value as JSON; bytes become ``{"base64": "..."}``."""
    if type(value) is int:
        return str(value)
    return json.dumps(value, default=_plain, ensure_ascii=False)


def from_json(text: str | None) -> object:
    """Return the value of a property from its JSON.

    Text that is not JSON, for example from an expression in a query, is returned unchanged.
    """
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (TypeError, ValueError):
            return value  # It only looks like bytes.
    return value


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)

"""Headers in which Event Hubs hands a Kafka client the properties of publishers over AMQP or HTTPS.

The service encodes each of their values as in AMQP 1.0. The headers of Kafka publishers come as
they were sent, and nothing says of a message which publisher it has. So a message's headers are
read as AMQP values if one of them can be nothing else: it is one whole AMQP value, and no text.
"""

from collections.abc import Iterable
from typing import Any, Final

from eventproc.sources.amqp.fields import plain
from eventproc.sources.amqp.values import MalformedError, decode


class ServiceHeaders(list[tuple[str, bytes | None]]):
    """The headers of a message of Event Hubs."""


_NOT_ONE: Final = object()


def decoded(headers: Iterable[tuple[str, bytes | None]]) -> list[tuple[str, Any]]:
    """Return the headers with their values as AMQP gives them, if their publisher used AMQP."""
    values = [(name, raw, _value_of(raw)) for name, raw in headers]
    if not any(value is not _NOT_ONE and not _is_text(raw) for _, raw, value in values):
        return [(name, raw) for name, raw, _ in values]
    return [(name, raw if value is _NOT_ONE else value) for name, raw, value in values]


def _value_of(raw: bytes | None) -> object:
    """Return the AMQP value that the bytes are, or ``_NOT_ONE``."""
    try:
        value, end = decode(raw or b"", 0)
    except MalformedError:
        return _NOT_ONE
    return plain(value) if raw is not None and end == len(raw) else _NOT_ONE


def _is_text(raw: bytes | None) -> bool:
    try:
        return raw is None or raw.decode().isprintable()
    except UnicodeDecodeError:
        return False

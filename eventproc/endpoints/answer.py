"""A request and its answer, as plain values; and the combined answer for several processors.

So the code that answers can be tested without a server.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

OK: Final = 200
UNAVAILABLE: Final = 503

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of a client."""

    method: str
    path: str
    """The path without the query, percent-decoded."""

    headers: Mapping[str, str]
    """The headers by name; look-ups ignore case."""

    body: bytes = b""
    local_host: str = ""
    """The address of this machine at which the connection arrived."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status of HTTP, and a body: JSON, or text or bytes with their type."""

    body: Body | str | bytes | AsyncIterator[bytes] = b""
    """The pieces of an iterator are sent one by one until it ends; it is cancelled when the client
    closes the connection."""

    status: int = OK
    content_type: str = "text/plain"
    """The content type, if the body is not JSON."""

    headers: Mapping[str, str] = field(default_factory=dict)


Respond: TypeAlias = Callable[[Request], Awaitable[Answer]]

Route: TypeAlias = Callable[[], Awaitable[Answer]]
"""Returns the answer to requests of one path."""

Routes: TypeAlias = Mapping[str, Route]


def verdict(entries: Iterable[Body]) -> Answer:
    """Return one answer for these processors: 200 if each entry's ``ok`` is true, else 503."""
    processors = list(entries)
    is_ok = all(each["ok"] for each in processors)
    return Answer({"ok": is_ok, "processors": processors}, OK if is_ok else UNAVAILABLE)

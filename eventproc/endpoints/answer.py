"""The answer of an endpoint, and the combined answer for several processors."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

OK: Final = 200
UNAVAILABLE: Final = 503

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A status of HTTP, and a body: JSON, or text with its type."""

    body: Body | str
    status: int = OK
    content_type: str = "text/plain"
    """The content type, if the body is text."""


Route: TypeAlias = Callable[[], Awaitable[Answer]]
"""Returns the answer to requests of one path."""

Routes: TypeAlias = Mapping[str, Route]


def verdict(entries: Iterable[Body]) -> Answer:
    """Return one answer for these processors: 200 if each entry's ``ok`` is true, else 503."""
    processors = list(entries)
    is_ok = all(each["ok"] for each in processors)
    return Answer({"ok": is_ok, "processors": processors}, OK if is_ok else UNAVAILABLE)

"""What an endpoint answers, and how the answers of several processes become one."""

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
    """Of text."""


Route: TypeAlias = Callable[[], Awaitable[Answer]]
"""Answers one path."""

Routes: TypeAlias = Mapping[str, Route]


def verdict(entries: Iterable[Body]) -> Answer:
    """Return the answer for these processors: green if each entry's ``ok`` is true."""
    processors = list(entries)
    is_ok = all(each["ok"] for each in processors)
    return Answer({"ok": is_ok, "processors": processors}, OK if is_ok else UNAVAILABLE)

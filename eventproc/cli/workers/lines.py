"""The lines that workers write, put together from what was read, and numbered."""

from collections.abc import Iterable, Iterator
from typing import Final

from eventproc.bounded_json import read_json

LINE_MAX: Final = 1 << 20
"""Bytes; a longer line is divided, so that a worker cannot fill the supervisor's memory."""


def lines_of(chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines that each chunk completes, without newlines; last an incomplete line."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LINE_MAX:
            lines.append(rest)
            rest = b""
        if lines:
            yield lines
    if rest:
        yield [rest]


def numbered_text(line: bytes, number: int) -> bytes:
    """Return the line with the worker's number before it."""
    return b"[%d] %b" % (number, line)


def numbered_json(line: bytes, number: int) -> bytes | None:
    """Return the JSON object on this line with a field ``worker``; ``None`` if there is none.

    A line that has such a field already stays as it is.
    """
    try:
        entry = read_json(line) if line.startswith(b"{") else None
    except ValueError:
        return None
    if not isinstance(entry, dict) or not entry:
        return None
    return line if "worker" in entry else b'{"worker": %d, %b' % (number, line[1:].lstrip())

"""Rows as CSV, for spreadsheets and other programs."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_CRLF: Final = "\r\n"


def csv_lines(
    rows: Iterable[Mapping[str, object]], fields: Sequence[str], *, header: bool = True
) -> str:
    """Return rows as CSV, each line with its end (RFC 4180, but for ends of one character).

    Args:
        rows: A mapping for each line, with these fields and no others.
        fields: The names of the columns, in order.
        header: Whether the first line has the names.

    ``None`` is an empty cell; true, false, lists and objects are JSON.
    """
    lines = [_line(fields)] if header else []
    lines += [_line([_cell(row[name]) for name in fields]) for row in rows]
    return "".join(lines)


def _line(cells: Sequence[object]) -> str:
    # The writer quotes a cell with a character of the line's end, so the end is CR LF first.
    text = io.StringIO()
    csv.writer(text, lineterminator=_CRLF).writerow(cells)
    return text.getvalue().removesuffix(_CRLF) + "\n"


def _cell(value: object) -> object:
    return json.dumps(value) if isinstance(value, bool | list | dict) else value

"""Rows as CSV, for spreadsheets and other programs."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence


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
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    if header:
        writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def _cell(value: object) -> object:
    return json.dumps(value) if isinstance(value, bool | list | dict) else value

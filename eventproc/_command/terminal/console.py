"""What verbs print: tables to a console, and rows as CSV.

Rule: text from outside (names in records, event bodies, error texts) reaches a terminal only as
``printable`` text: here, in ``cell``, or in ``exits.print_error``.
"""

import csv
import io
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeAlias, TypeVar

from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    RenderableType,
    RenderHook,
    RenderResult,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from eventproc._base.logs import printable

UNCUT: Final = 10_000
"""The width where no terminal has one. Tables take what they need, and lines are not wrapped."""

_CRLF: Final = "\r\n"

T = TypeVar("T")

Fields: TypeAlias = Mapping[str, Callable[[T], object]]
"""The fields of a row in their order, each with what returns its value of an item."""


def standard_output() -> Console:
    """Return a console on standard output: as wide as the terminal, without a limit if piped."""
    width = None if sys.stdout.isatty() else UNCUT
    console = Console(width=width, markup=False, emoji=False)
    console.push_render_hook(_PrintableText())
    return console


class _PlainTable(Table):
    """A table without lines.

    Rich lays out cell by cell, which takes half a millisecond for each row. Where the rows fit as
    they are, this prints each as one line.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = [[_as_text(each) for each in (c.header, *c.cells)] for c in self.columns]
        lengths = [[each.cell_len for each in cells] for cells in columns]
        widths = [max(each) for each in lengths]
        is_simple = all("\n" not in each.plain and not each.spans for c in columns for each in c)
        if not is_simple or sum(widths) + 2 * len(widths) - 2 > options.max_width:
            yield from super().__rich_console__(console, options)
            return
        are_right = [column.justify == "right" for column in self.columns]
        styles = ["bold", *(row.style or "" for row in self.rows)]
        for row, style in enumerate(styles):
            begin = ""
            for cells, length, width, is_right in zip(
                columns, lengths, widths, are_right, strict=True
            ):
                blank, text = " " * (width - length[row]), cells[row]
                shown = f"{begin}{blank}{text.plain}" if is_right else f"{begin}{text.plain}{blank}"
                yield Segment(shown, console.get_style(style) + console.get_style(text.style))
                begin = "  "
            yield Segment.line()


def _as_text(content: RenderableType) -> Text:
    """Return a cell of a table as text."""
    return content if isinstance(content, Text) else Text(str(content))


def plain_table(*columns: str, numbers: Collection[str] = ()) -> Table:
    """Return a table without lines; the columns of *numbers* are aligned to the right."""
    table = _PlainTable(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left")
    return table


def cell(text: str, style: str = "") -> Text:
    """Return text from outside for one line of a table."""
    return Text(printable(text), style=style)


def format_duration(span: timedelta) -> str:
    """Format a duration with one unit: ``0.4 s``, ``12 s``, ``3 min``, ``2 h``, ``5 days``."""
    seconds = span.total_seconds()
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            amount = seconds / unit
            return f"{amount:.1f} {name}" if amount < 10 and unit == 1 else f"{amount:.0f} {name}"  # noqa: PLR2004
    return f"{seconds / 86_400:.0f} days"


def print_csv(lines: str) -> None:
    """Print CSV: as it is for programs, printable on a terminal."""
    shown = printable(lines, keep="\n") if sys.stdout.isatty() else lines
    print(shown, end="", flush=True)


def rows_of(fields: Fields[T], items: Iterable[T]) -> list[dict[str, object]]:
    """Return each item as a row, for JSON or for ``csv_lines``."""
    return [{name: value_of(item) for name, value_of in fields.items()} for item in items]


def csv_lines(
    rows: Iterable[Mapping[str, object]], fields: Iterable[str], *, header: bool = True
) -> str:
    """Return rows as CSV, each line with its end (RFC 4180, but for ends of one character).

    Args:
        rows: A mapping for each line, with these fields and no others.
        fields: The names of the columns, in order.
        header: Whether the first line has the names.

    ``None`` is an empty cell; true, false, lists and objects are JSON.
    """
    fields = list(fields)
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


class _PrintableText(RenderHook):
    """Escapes what is not printable in everything that a console prints."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Printable(each) for each in renderables]


class _Printable:
    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self._content, options):
            yield Segment(text if control else printable(text, keep="\n"), style, control)

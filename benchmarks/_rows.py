"""Shared by the benchmarks: options, and the printing of rows.

A row is a flat mapping of names to numbers and text. ``_run.py`` collects the rows of every program
here that imports this module, by ``--format json``; with ``--quick`` each runs in a few seconds.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]

WIDTH: Final = 130
"""The width of the output if it is not a terminal."""


def options(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--quick", action="store_true", help="smallest sizes, to see that it runs")
    return parser


def print_progress(what: str) -> None:
    """Print progress to standard error, apart from the rows."""
    print(f"   {what}", file=sys.stderr, flush=True)


def print_rows(rows: Sequence[Row], form: str, title: str = "") -> None:
    """Print all rows, for programs, or for people: a table for the rows that have equal names."""
    if form == "json":
        print(json.dumps([dict(row) for row in rows], indent=1), flush=True)
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    tables: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        tables.setdefault(tuple(row), []).append(row)
    for of_one_kind in tables.values():
        console.print(table_of(of_one_kind, title))


def table_of(rows: Sequence[Row], title: str = "") -> Table:
    """Return a table with a column for each name that any of the rows has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD)
    for name in names:
        is_number = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(name.replace("_", " "), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(cell_text(row.get(name)) for name in names))
    return table


def cell_text(cell: Cell) -> str:
    """Format a number with its significant digits."""
    if cell is None:
        return "-"
    if isinstance(cell, bool | str):
        return str(cell)
    return f"{cell:,.0f}" if isinstance(cell, int) or abs(cell) >= 100 else f"{cell:,.3g}"  # noqa: PLR2004 - digits

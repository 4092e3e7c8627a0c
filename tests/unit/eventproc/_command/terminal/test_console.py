"""What verbs print: tables, durations, and rows as CSV."""

import csv
import io
import subprocess
import sys
from copy import copy
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from eventproc._command.terminal.console import (
    cell,
    csv_lines,
    format_duration,
    plain_table,
    print_csv,
)

PROGRAM = """
from rich.table import Table
from eventproc._command.terminal.console import standard_output
table = Table("name", "text", box=None, pad_edge=False)
table.add_row("n" * 100, "t" * 100)
standard_output().print(table)
"""


def test_piped_tables_are_not_cut():
    """Each row is one line, however long; without a terminal there is no width."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )

    assert found.stdout.splitlines()[1].split() == ["n" * 100, "t" * 100]


HOSTILE = """
from rich.table import Table
from eventproc._command.terminal.console import cell, standard_output
evil = "[bold]\\x1b[2J\\u202e :smile: [/nothing]"
table = Table("name", evil, box=None, pad_edge=False)
table.add_row(evil, cell("a\\r\\nb"))
standard_output().print(table)
standard_output().print(evil)
"""


def test_text_from_outside_is_shown_and_not_obeyed():
    """Neither by the terminal nor by the library that makes tables, which has a markup."""
    found = subprocess.run(
        [sys.executable, "-c", HOSTILE], capture_output=True, text=True, check=True, timeout=60
    ).stdout

    assert found.replace("\n", "").isprintable()
    assert found.count("[bold]\\x1b[2J\\u202e :smile: [/nothing]") == 3
    assert "a\\r\\nb" in found


@given(
    st.lists(st.tuples(st.text("ab \u65e5\u0301", max_size=6), st.integers(0, 9999)), max_size=4),
    st.sampled_from((8, 14, 200)),
)
def test_a_table_is_laid_out_as_rich_does(rows, width):
    """Whether it fits, and is printed a row at a time, or has to be folded."""
    table = plain_table("name", "number", numbers=("number",))
    for name, number in rows:
        table.add_row(cell(name), str(number), style="bold" if number > 99 else None)
    slow = copy(table)
    slow.__class__ = Table
    texts = []
    for each in (table, slow):
        printed = io.StringIO()
        Console(file=printed, width=width, markup=False, emoji=False).print(each)
        texts.append(printed.getvalue())

    assert texts[0] == texts[1]


def test_csv_is_printable_on_a_terminal_and_as_it_is_for_programs(capsys, monkeypatch):
    """A program reads back any text; a terminal obeys none."""
    print_csv("a\x1b[2J\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_csv("a\x1b[2J\n")

    assert capsys.readouterr().out == "a\x1b[2J\na\\x1b[2J\n"


def test_values_that_are_no_text_are_json_and_none_is_empty():
    """So true and a list can be read by whatever reads JSON."""
    rows = [{"a": True, "b": None, "c": [[1, 2]], "d": 1.5}]

    assert csv_lines(rows, "abcd") == 'a,b,c,d\ntrue,,"[[1, 2]]",1.5\n'


@example([{"a": "\r", "b": ""}])
@given(st.lists(st.fixed_dictionaries({"a": st.text(), "b": st.text()})))
def test_any_text_is_read_back(rows):
    """Commas, quotes and line ends are quoted."""
    text = csv_lines(rows, ("a", "b"))

    assert list(csv.DictReader(io.StringIO(text, newline=""))) == rows


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.44, "0.4 s"),
        (12.3, "12 s"),
        (119, "119 s"),
        (180, "3 min"),
        (7200, "2 h"),
        (432_000, "5 days"),
    ],
)
def test_durations_are_printed_with_one_figure_and_one_unit(seconds, text):
    """With as many digits as matter."""
    assert format_duration(timedelta(seconds=seconds)) == text

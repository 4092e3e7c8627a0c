"""The console that tables are printed to."""

import subprocess
import sys

from eventproc._command.terminal.console import print_csv

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


def test_csv_is_printable_on_a_terminal_and_as_it_is_for_programs(capsys, monkeypatch):
    """A program reads back any text; a terminal obeys none."""
    print_csv("a\x1b[2J\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_csv("a\x1b[2J\n")

    assert capsys.readouterr().out == "a\x1b[2J\na\\x1b[2J\n"

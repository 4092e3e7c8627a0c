"""The console that tables are printed to."""

import subprocess
import sys

PROGRAM = """
from rich.table import Table
from eventproc.cli.terminal.console import standard_output
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

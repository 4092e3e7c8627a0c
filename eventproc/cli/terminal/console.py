"""The console that verbs print tables to."""

import sys
from typing import Final

from rich.console import Console

UNCUT: Final = 10_000
"""The width where no terminal has one. Tables take what they need, and lines are not wrapped."""


def standard_output() -> Console:
    """Return a console on standard output: as wide as the terminal, without a limit if piped."""
    return Console(width=None if sys.stdout.isatty() else UNCUT)

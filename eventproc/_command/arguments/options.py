"""Options that several verbs share, with their help texts and environment variables."""

import asyncio
import select
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

import typer

from eventproc._base.settings import PositiveSpan, Within
from eventproc._command.terminal.exits import print_error
from eventproc.errors import ConfigurationError

_ASK_SLICE_S: Final = 0.2
"""How often a question looks whether the command is to end."""


class OutputFormat(StrEnum):
    """The format of the output: a table for people, JSON for programs."""

    TABLE = "table"
    JSON = "json"


class RowsFormat(StrEnum):
    """The format of output that has a row for each partition, checkpoint or letter."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Format = Annotated[OutputFormat, typer.Option("--format", help="json: for programs.")]

RowFormat = Annotated[
    RowsFormat,
    typer.Option("--format", help="json: for programs. csv: a line for each row of the table."),
]

StopAtEof = Annotated[
    bool,
    typer.Option(
        "--stop-at-eof",
        help="Stop when standard input ends, too: for programs that start this one.",
    ),
]

ReadingInterval: TypeAlias = Annotated[timedelta, Within(least=timedelta(milliseconds=100))]
"""Time between two readings of a group; a shorter one would ask store and hub without a pause."""

Expiration = Annotated[
    PositiveSpan,
    typer.Option(
        envvar="EVENTPROC_EXPIRATION",
        help="What the processes of the group have as --expiration: an owner that has not renewed "
        "for this long counts as dead.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ChangeMode:
    """The options of verbs that change something: show it only, ask first, and how to say it."""

    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False
    output: Format = OutputFormat.TABLE

    def __post_init__(self) -> None:
        """Refuse a question that cannot be asked."""
        if not (self.is_table or self.dry_run or self.yes):
            raise ConfigurationError(
                "--format json cannot ask for confirmation: give --yes or --dry-run"
            )

    @property
    def is_table(self) -> bool:
        """Whether the output is for people."""
        return self.output is OutputFormat.TABLE

    def refuse(self, what: str, reason: str | None) -> None:
        """Refuse a change; with ``--dry-run`` only say that it would be refused.

        Args:
            what: The change, such as ``import``.
            reason: Why, with the remedy; ``None``: it is not refused.

        Raises:
            ConfigurationError: It is refused.
        """
        if reason is not None and not self.dry_run:
            raise ConfigurationError(f"{reason}. Nothing was changed")
        if reason is not None:
            print_error(f"without --dry-run this {what} is refused: {reason}")

    async def confirmed(self, question: str) -> bool:
        """Return whether the user confirms on standard input; say so if not.

        Raises:
            ConfigurationError: Standard input is closed.
        """
        is_cancelled = threading.Event()
        try:
            if self.yes or await asyncio.to_thread(_ask, question, is_cancelled):
                return True
        finally:
            is_cancelled.set()
        print("Nothing was changed.")
        return False


def _ask(question: str, is_cancelled: threading.Event) -> bool:
    print(f"{question} [y/N] ", end="", flush=True)
    with suppress(OSError, ValueError):  # Standard input is no file: it has an answer at once.
        # The process could not end before a line is typed.
        while not select.select([sys.stdin], (), (), _ASK_SLICE_S)[0]:
            if is_cancelled.is_set():
                return False
    answer = sys.stdin.readline()
    if not answer:
        print()
        raise ConfigurationError("standard input is closed: give --yes or --dry-run")
    return answer.strip().lower() in {"y", "yes"}

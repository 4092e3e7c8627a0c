"""Options that several verbs share, with their help texts and environment variables.

The options of verbs that change something: show it only, ask first, and how to say it.

Parse hubs, and format durations.
"""

import asyncio
import sys
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final

import typer

from eventproc.errors import ConfigurationError
from eventproc.ports import HealthReporter


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

Workers = Annotated[
    int,
    typer.Option(
        "--workers",
        envvar="EVENTPROC_WORKERS",
        metavar="N",
        min=0,
        help="Run N processes on this host, to use N cores, and restart those that die. They are "
        "named NAME-0, NAME-1 and so on in the group; NAME is --owner-id, by default the host's "
        "name. Without --workers this process does the work itself.",
        show_default=False,
    ),
]

EXPIRATION: Final = typer.Option(
    envvar="EVENTPROC_EXPIRATION",
    help="After this long without a renewal, the owner of a partition counts as dead and another "
    "processor may claim it. Must be the same for all processors of a group.",
)
Expiration = Annotated[
    timedelta,
    typer.Option(
        envvar="EVENTPROC_EXPIRATION",
        help="What the processes of the group have as --expiration: an owner that has not renewed "
        "for this long counts as dead.",
    ),
]

Http = Annotated[
    str,
    typer.Option(
        envvar="EVENTPROC_HTTP",
        metavar="[HOST:]PORT",
        help="Serve /live, /ready, /partitions, /metrics and /status for probes, Prometheus and "
        "people. PORT alone listens on 127.0.0.1, which probes of Kubernetes do not reach: in a "
        "container give 0.0.0.0:PORT. Needs `pip install 'eventproc[http]'`.",
    ),
]


def make_health(http: str) -> HealthReporter | None:
    """Return what serves ``--http``; ``None`` for an empty text.

    Raises:
        ConfigurationError: the address has another form, or the extra is missing.
    """
    if not http:
        return None
    from eventproc.health import HealthServer  # noqa: PLC0415 - an extra

    return HealthServer(http, name="--http")


@dataclass(frozen=True, kw_only=True)
class ChangeMode:
    """How something is changed."""

    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False
    output: Format = OutputFormat.TABLE

    @property
    def is_table(self) -> bool:
        """Whether the output is for people."""
        return self.output is OutputFormat.TABLE

    def check(self) -> None:
        """Refuse a question that cannot be asked."""
        if not (self.is_table or self.dry_run or self.yes):
            raise ConfigurationError(
                "--format json cannot ask for confirmation: give --yes or --dry-run"
            )

    async def confirmed(self, question: str) -> bool:
        """Return whether the user confirms on standard input; say so if not.

        Raises:
            ConfigurationError: Standard input is closed.
        """
        if self.yes or await asyncio.to_thread(_ask, question):
            return True
        print("Nothing was changed.")
        return False


def _ask(question: str) -> bool:
    print(f"{question} [y/N] ", end="", flush=True)
    answer = sys.stdin.readline()
    if not answer:
        print()
        raise ConfigurationError("standard input is closed: give --yes or --dry-run")
    return answer.strip().lower() in {"y", "yes"}


def format_duration(span: timedelta) -> str:
    """Format a duration with one unit: ``0.4 s``, ``12 s``, ``3 min``, ``2 h``, ``5 days``."""
    seconds = span.total_seconds()
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            amount = seconds / unit
            return f"{amount:.1f} {name}" if amount < 10 and unit == 1 else f"{amount:.0f} {name}"  # noqa: PLR2004
    return f"{seconds / 86_400:.0f} days"

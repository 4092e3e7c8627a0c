"""The options of verbs that change something: show it only, ask first, and how to say it."""

import asyncio
import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from eventproc.cli.arguments import options
from eventproc.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class ChangeMode:
    """How something is changed."""

    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False
    output: options.Format = options.OutputFormat.TABLE

    @property
    def is_table(self) -> bool:
        """Whether the output is for people."""
        return self.output is options.OutputFormat.TABLE

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

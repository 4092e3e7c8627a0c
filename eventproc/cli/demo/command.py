"""What the verbs of the demos share: options, signals, report and exit code."""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Protocol, TextIO, TypeVar

import typer
from rich.console import Console, RenderableType

from eventproc.cli.demo.live import Scene, Screen, TextScreen, open_screen
from eventproc.cli.demo.stage import Stage, StoreChoice
from eventproc.cli.terminal.console import standard_output
from eventproc.cli.terminal.exits import FAILED, INTERRUPTED, OK


class ReportFormat(StrEnum):
    """The format of the report: text for people, JSON for programs."""

    TEXT = "text"
    JSON = "json"


class Outcome(Protocol):
    """What a demo reports."""

    @property
    def is_good(self) -> bool:
        """Whether the demo showed what it promises."""

    def as_json(self) -> dict[str, object]:
        """Return the report as JSON."""


Report = TypeVar("Report", bound=Outcome)
SomeStage = TypeVar("SomeStage", bound=Stage)

Store = Annotated[
    StoreChoice,
    typer.Option(
        "--store",
        help="Where the group keeps its records: azurite (a blob storage emulator, needs Node.js), "
        "sqlite (a file), or auto: azurite if it is installed.",
    ),
]
Format = Annotated[
    ReportFormat,
    typer.Option("--format", help="json: print only the report to standard output, for programs."),
]


def run_demo(
    make_stage: Callable[[Callable[[str], None]], SomeStage],
    play: Callable[[SomeStage, Screen[Scene]], Awaitable[Report]],
    lines: Callable[[TextIO], TextScreen[Scene]],
    draw: Callable[[Scene], RenderableType],
    print_report: Callable[[Report, Console], None],
    *,
    output: ReportFormat,
) -> int:
    """Run a demo, print its report, and return the exit code.

    Args:
        make_stage: Makes the stage, given a function that prints a line.
        play: The demo. The first SIGINT, SIGTERM or SIGHUP cancels it, and it must then end all
            processes that it started without the stage.
        lines: Shows the demo where the output is not a terminal.
        draw: Draws the demo on a terminal.
        print_report: Prints the report for people.
        output: The format of the report.
    """
    is_json = output is ReportFormat.JSON

    async def until_signal() -> Report:
        _cancel_on_signals()
        with open_screen(lines, draw, sys.stderr if is_json else sys.stdout) as screen:
            stage = make_stage(screen.print_line)
            async with stage:
                return await play(stage, screen)

    try:
        report = asyncio.run(until_signal())
    except asyncio.CancelledError:
        print("eventproc: interrupted; every process has ended", file=sys.stderr)
        return INTERRUPTED
    if is_json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        print_report(report, standard_output())
    return OK if report.is_good else FAILED


def _cancel_on_signals() -> None:
    """Cancel the current task at the first SIGINT, SIGTERM or SIGHUP, and ignore further ones."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def end() -> None:
        # A second signal must not interrupt the cleanup.
        for number in numbers:
            loop.add_signal_handler(number, lambda: None)
        task.cancel()

    numbers = [signal.SIGINT, signal.SIGTERM, *filter(None, [getattr(signal, "SIGHUP", None)])]
    with suppress(NotImplementedError):  # On Windows, asyncio.run handles Ctrl+C itself.
        for number in numbers:
            loop.add_signal_handler(number, end)

"""``eventproc demo``: watch a fleet process a real data set, and check what came out."""

import asyncio
import importlib
import json
import signal
import sys
import time
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, TextIO

import typer
from rich.console import Console

from eventproc.cli.demo import screen as looks
from eventproc.cli.demo.flights import FLIGHT_COUNT_MAX, find_data_file
from eventproc.cli.demo.live import open_screen
from eventproc.cli.demo.report import Report
from eventproc.cli.demo.stage import Stage, StoreChoice
from eventproc.cli.demo.story import Plot, Story
from eventproc.cli.demo.summary import print_summary
from eventproc.cli.exits import FAILED, INTERRUPTED, OK
from eventproc.cli.extras import needing


class ReportFormat(StrEnum):
    """For whom the report is."""

    TEXT = "text"
    JSON = "json"


def demo(
    store: Annotated[
        StoreChoice,
        typer.Option(
            help="Where the group keeps its records: azurite (blob storage on this machine, needs "
            "Node.js), sqlite (a file), or auto: azurite if it is there."
        ),
    ] = StoreChoice.AUTO,
    output: Annotated[
        ReportFormat, typer.Option("--format", help="json: only the report on standard output.")
    ] = ReportFormat.TEXT,
    processors: Annotated[
        int, typer.Option(min=2, max=8, help="Processes at the start; one more joins later.")
    ] = 3,
    partitions: Annotated[
        int, typer.Option(min=2, max=64, help="Of the event hub that is made for it.")
    ] = 16,
    events: Annotated[
        int, typer.Option(min=100, max=FLIGHT_COUNT_MAX, help="How many flights to publish.")
    ] = 100_000,
) -> int:
    """See a fleet of processes share the work, lose one, and lose no event.

    Starts an event hub and a blob storage on this machine, publishes flights that left New York
    in 2013 (keyed by aircraft), and lets processes keep a logbook for each aircraft. Meanwhile one
    process joins, one is killed, one is frozen until the others have taken over and then goes on,
    and one leaves. In the end the logbooks are compared with the same figures computed directly
    from the data: they are equal, or the exit code is 1.

    It needs no cloud and no Docker, takes about a minute, and leaves nothing behind.

    Exit codes: 0 nothing lost and the result is right, 1 otherwise, 2 something given cannot
    work, 130 interrupted.
    """
    find_data_file()
    with needing("demo"):
        # Better missed here than by a child.
        importlib.import_module("eventproc.cli.demo.publisher")
    plot = Plot(event_count=events, processor_count=processors, partition_count=partitions)
    is_json = output is ReportFormat.JSON
    try:
        report = asyncio.run(_play(plot, store, sys.stderr if is_json else sys.stdout))
    except asyncio.CancelledError:
        print("eventproc: interrupted; every process has ended", file=sys.stderr)
        return INTERRUPTED
    if is_json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        print_summary(report, Console())
    return OK if report.is_good else FAILED


async def _play(plot: Plot, store: StoreChoice, output: TextIO) -> Report:
    """Play it; the first SIGINT, SIGTERM or SIGHUP ends it, and everything that it started."""
    begun_s = time.monotonic()
    end_on_signals()
    with open_screen(looks.Lines, looks.draw, output) as screen:
        stage = Stage(partition_count=plot.partition_count, store=store, tell=screen.tell)
        async with stage:
            if stage.note.why:
                screen.tell(f"no Azurite, so the group is kept in SQLite: {stage.note.why}")
            screen.tell(f"the group's records are kept in {stage.note.name}")
            return await Story(stage, plot, begun_s=begun_s, show=screen.show).play()


def end_on_signals() -> None:
    """Cancel this task at the first signal to end."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def end() -> None:
        # Once: a second one must not disturb the clearing away.
        for number in numbers:
            loop.add_signal_handler(number, lambda: None)
        task.cancel()

    numbers = [signal.SIGINT, signal.SIGTERM, *filter(None, [getattr(signal, "SIGHUP", None)])]
    with suppress(NotImplementedError):  # Windows: Ctrl+C ends asyncio.run by itself
        for number in numbers:
            loop.add_signal_handler(number, end)

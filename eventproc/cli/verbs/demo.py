"""``eventproc demo``: run a group of processors on a real data set, and check the result."""

import importlib
from collections.abc import Callable
from typing import Annotated

import typer

from eventproc.cli.demo.command import Format, ReportFormat, Store, run_demo
from eventproc.cli.demo.flights import FLIGHT_COUNT_MAX, find_data_file
from eventproc.cli.demo.hub import HubStage
from eventproc.cli.demo.live import Screen
from eventproc.cli.demo.processors.report import Report
from eventproc.cli.demo.processors.scene import Scene
from eventproc.cli.demo.processors.screen import Lines, draw
from eventproc.cli.demo.processors.story import DemoRun
from eventproc.cli.demo.processors.summary import print_summary
from eventproc.cli.demo.stage import StoreChoice
from eventproc.extras import needing


def demo(
    store: Store = StoreChoice.AUTO,
    output: Format = ReportFormat.TEXT,
    processors: Annotated[
        int,
        typer.Option(
            min=2, max=8, help="The number of processes at the start; one more joins later."
        ),
    ] = 3,
    partitions: Annotated[
        int, typer.Option(min=2, max=64, help="The number of partitions of the event hub.")
    ] = 16,
    events: Annotated[
        int, typer.Option(min=100, max=FLIGHT_COUNT_MAX, help="The number of flights to publish.")
    ] = 100_000,
) -> int:
    """See a group of processes share the work, lose a process, and lose no event.

    Starts an event hub and a blob storage on this machine, publishes flights that left New York
    in 2013 (keyed by aircraft), and runs processes that keep a logbook for each aircraft.
    Meanwhile one process joins, one is killed, one is frozen until the others have taken over and
    then continues, and one leaves. In the end the logbooks are compared with the same figures
    computed directly from the data. If they differ, the exit code is 1.

    It needs no cloud and no Docker, takes about a minute, and removes everything that it created.

    Exit codes: 0 no event lost and the result is right, 1 otherwise, 2 an option is wrong, 130
    interrupted.
    """
    find_data_file()
    with needing("demo"):
        # Imported here as well, so that a missing package is reported before a child needs it.
        importlib.import_module("eventproc.cli.demo.publisher")

    async def play(stage: HubStage, screen: Screen[Scene]) -> Report:
        run = DemoRun(stage, event_count=events, processor_count=processors, show=screen.show)
        return await run.play()

    def make_stage(print_line: Callable[[str], None]) -> HubStage:
        return HubStage(partition_count=partitions, store=store, print_line=print_line)

    return run_demo(make_stage, play, Lines, draw, print_summary, output=output)

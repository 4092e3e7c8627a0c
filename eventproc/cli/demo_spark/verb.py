"""``eventproc demo-spark``: watch Spark lose an executor, and check what came out."""

import asyncio
import importlib
import json
import sys
import time
from contextlib import ExitStack
from typing import Annotated, TextIO

import typer
from rich.console import Console

from eventproc.cli.demo.flights import FLIGHT_COUNT_MAX, find_data_file
from eventproc.cli.demo.live import open_screen
from eventproc.cli.demo.stage import Stage, StoreChoice
from eventproc.cli.demo.verb import ReportFormat, end_on_signals
from eventproc.cli.demo_spark import screen as looks
from eventproc.cli.demo_spark.report import Report, print_report
from eventproc.cli.exits import FAILED, INTERRUPTED, OK
from eventproc.cli.extras import needing


def demo_spark(
    store: Annotated[
        StoreChoice,
        typer.Option(
            help="Where the group keeps its checkpoints: azurite (blob storage on this machine, "
            "needs Node.js), sqlite (a file), or auto: azurite if it is there."
        ),
    ] = StoreChoice.AUTO,
    output: Annotated[
        ReportFormat, typer.Option("--format", help="json: only the report on standard output.")
    ] = ReportFormat.TEXT,
    partitions: Annotated[
        int, typer.Option(min=2, max=32, help="Of the event hub that is made for it.")
    ] = 8,
    events: Annotated[
        int, typer.Option(min=1000, max=FLIGHT_COUNT_MAX, help="How many flights to publish.")
    ] = 100_000,
) -> int:
    """See Spark run a handler and an aggregate, lose an executor, and lose no event.

    Starts an event hub, a blob storage and a Spark of two executor processes on this machine,
    and publishes flights that left New York in 2013. One query adds them up by week and airport,
    one hands them to the handler of `eventproc demo` and checkpoints. Half-way one executor is
    killed. In the end both results are compared with the same figures computed directly from the
    data, and the checkpoints with the end of each partition: they are equal, or the exit code
    is 1.

    It needs Java 17, no cloud and no Docker, takes a minute or two, and leaves nothing behind.

    Exit codes: 0 nothing lost and everything right, 1 otherwise, 2 something given cannot work,
    130 interrupted.
    """
    find_data_file()
    for extra, module in (
        ("demo", "eventproc.cli.demo.publisher"),
        ("spark", "eventproc.cli.demo_spark.cluster"),
    ):
        with needing(extra):
            importlib.import_module(module)
    is_json = output is ReportFormat.JSON
    try:
        report = asyncio.run(
            _play(partitions, events, store, sys.stderr if is_json else sys.stdout)
        )
    except asyncio.CancelledError:
        print("eventproc: interrupted; every process has ended", file=sys.stderr)
        return INTERRUPTED
    if is_json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        print_report(report, Console())
    return OK if report.is_good else FAILED


async def _play(partitions: int, events: int, store: StoreChoice, output: TextIO) -> Report:
    """Play it; the first SIGINT, SIGTERM or SIGHUP ends it, and everything that it started."""
    from eventproc.cli.demo_spark.cluster import open_cluster  # noqa: PLC0415 - Spark is an extra
    from eventproc.cli.demo_spark.story import Plot, Story  # noqa: PLC0415 - it knows the cluster

    begun_s = time.monotonic()
    end_on_signals()
    plot = Plot(event_count=events, partition_count=partitions)
    with open_screen(looks.Lines, looks.draw, output) as screen, ExitStack() as spark:
        stage = Stage(partition_count=partitions, store=store, tell=screen.tell)
        async with stage:
            if stage.note.why:
                screen.tell(f"no Azurite, so checkpoints are kept in SQLite: {stage.note.why}")
            screen.tell(f"checkpoints are kept in {stage.note.name}")
            screen.tell("starting Spark: a master, two workers, an executor for each")
            opening = open_cluster(stage, plot.events_per_batch)
            starting = asyncio.ensure_future(asyncio.to_thread(spark.enter_context, opening))
            try:
                # To its end even when we are interrupted: only then there is something to stop.
                cluster = await asyncio.shield(starting)
                return await Story(stage, cluster, plot, begun_s=begun_s, show=screen.show).play()
            finally:
                await asyncio.wait([starting])
                await asyncio.to_thread(spark.close)

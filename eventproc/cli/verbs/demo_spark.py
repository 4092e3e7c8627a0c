"""``eventproc demo-spark``: run a handler and an aggregate on Spark, and check the results."""

import asyncio
import importlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer

from eventproc.cli.demo.command import Format, ReportFormat, Store, run_demo
from eventproc.cli.demo.flights import FLIGHT_COUNT_MAX, find_data_file
from eventproc.cli.demo.hub import HubStage
from eventproc.cli.demo.live import Screen
from eventproc.cli.demo.spark.report import Report, print_report
from eventproc.cli.demo.spark.scene import Scene
from eventproc.cli.demo.spark.screen import Lines, draw
from eventproc.cli.demo.stage import StoreChoice
from eventproc.concurrency.tasks import retrieve_outcome
from eventproc.extras import needing


def demo_spark(
    store: Store = StoreChoice.AUTO,
    output: Format = ReportFormat.TEXT,
    partitions: Annotated[
        int, typer.Option(min=2, max=32, help="The number of partitions of the event hub.")
    ] = 8,
    events: Annotated[
        int, typer.Option(min=1000, max=FLIGHT_COUNT_MAX, help="The number of flights to publish.")
    ] = 100_000,
) -> int:
    """See Spark run a handler and an aggregate, lose an executor, and lose no event.

    Starts an event hub, a blob storage and Spark with two executor processes on this machine, and
    publishes flights that left New York in 2013. One query aggregates them by week and airport,
    the other gives them to the handler of `eventproc demo` and writes checkpoints. Half-way, one
    executor is killed. In the end both results are compared with the same figures computed
    directly from the data, and the checkpoints with the end of each partition. If anything
    differs, the exit code is 1.

    It needs Java 17, but no cloud and no Docker, takes a minute or two, and removes everything that
    it created.

    Exit codes: 0 no event lost and the results are right, 1 otherwise, 2 an option is wrong, 130
    interrupted.
    """
    find_data_file()
    for extra, module in (
        ("demo", "eventproc.cli.demo.publisher"),
        ("spark", "eventproc.cli.demo.spark.cluster"),
    ):
        with needing(extra):
            importlib.import_module(module)

    async def play(stage: HubStage, screen: Screen[Scene]) -> Report:
        return await _play(events, stage, screen)

    def make_stage(print_line: Callable[[str], None]) -> HubStage:
        return HubStage(partition_count=partitions, store=store, print_line=print_line)

    return run_demo(make_stage, play, Lines, draw, print_report, output=output)


async def _play(events: int, stage: HubStage, screen: Screen[Scene]) -> Report:
    from eventproc.cli.demo.spark.cluster import open_cluster  # noqa: PLC0415 - Spark is an extra
    from eventproc.cli.demo.spark.story import DemoRun  # noqa: PLC0415 - as above

    screen.print_line("starting Spark: a master, two workers, an executor for each")
    # Small enough for several batches before and after the kill.
    opening = open_cluster(stage, max(100, events // 10))
    with ExitStack() as spark:
        starting = asyncio.ensure_future(asyncio.to_thread(spark.enter_context, opening))
        starting.add_done_callback(retrieve_outcome)
        try:
            # If this task is cancelled, Spark must finish its start before it can be stopped.
            cluster = await asyncio.shield(starting)
            return await DemoRun(stage, cluster, event_count=events, show=screen.show).play()
        finally:
            await asyncio.wait([starting])
            await asyncio.to_thread(spark.close)

"""``eventproc demo``: run a group of processors on a real data set, and check the result."""

import asyncio
import importlib
import json
import signal
import sys
import time
from contextlib import suppress
from typing import Annotated

import typer

from eventproc._base.extras import needing
from eventproc._command.arguments.options import OutputFormat
from eventproc._command.demo.flights import FLIGHT_COUNT_MAX, find_data_file
from eventproc._command.demo.group import StoreChoice, open_group
from eventproc._command.demo.report import Report
from eventproc._command.demo.run import DemoRun
from eventproc._command.terminal.console import standard_output
from eventproc._command.terminal.exits import FAILED, INTERRUPTED, OK


def demo(
    store: Annotated[
        StoreChoice,
        typer.Option(
            help="Where the group keeps its records: azurite (a blob storage emulator, needs "
            "Node.js), sqlite (a file), or auto: azurite if it is installed."
        ),
    ] = StoreChoice.AUTO,
    output: Annotated[
        OutputFormat,
        typer.Option(
            "--format", help="json: print only the report to standard output, for programs."
        ),
    ] = OutputFormat.TABLE,
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
    then continues, and one leaves. A page in your browser shows it: the demo prints its address. In
    the end the logbooks are compared with the same figures computed directly from the data. If they
    differ, the exit code is 1.

    It needs no cloud and no Docker, takes about a minute, and removes everything that it created.
    Without Azurite the group is kept in SQLite, and no process is frozen.

    Exit codes: 0 no event lost and the result is right, 1 otherwise, 2 an option is wrong, 3 the
    store or the hub did not answer (on a machine that is far too busy), 130 interrupted.
    """
    find_data_file()
    with needing("demo"):
        # Imported here as well, so that a missing package is reported before a child needs it.
        importlib.import_module("eventproc._command.demo.publisher")
    is_json = output is OutputFormat.JSON
    begun_s = time.monotonic()

    def say(line: str) -> None:
        elapsed_s = time.monotonic() - begun_s
        print(f"{elapsed_s:6.1f} s  {line}", file=sys.stderr if is_json else None, flush=True)

    async def show() -> Report:
        _cancel_on_signals()
        async with open_group(partitions, store, say) as group:
            run = DemoRun(group, event_count=events, processor_count=processors, say=say)
            return await run.run()

    try:
        report = asyncio.run(show())
    except asyncio.CancelledError:
        print("eventproc: interrupted; every process has ended", file=sys.stderr)
        return INTERRUPTED
    if is_json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        standard_output().print("", report.as_table(), f"store: {report.store}", sep="\n")
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

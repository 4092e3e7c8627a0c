"""``eventproc simulate``: what a fleet will do and cost, answered on virtual time."""

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc.cli import options
from eventproc.cli.exits import OK
from eventproc.cli.values import parse_duration
from eventproc.config import EventProcessorConfig
from eventproc.models import LoadBalancingStrategy
from eventproc.ports import CheckpointStore
from eventproc.simulation import Report, Script, parse_event, play, report_of


def simulate(
    partitions: Annotated[int, typer.Option(help="Of the event hub.")] = 32,
    processors: Annotated[int, typer.Option(help="That start at once in the beginning.")] = 4,
    event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT:COUNT[@TIME]",
            help="What happens: join, leave, crash, restart, roll or grow. Repeat it for more; "
            "without times they are spread evenly.",
            show_default=False,
        ),
    ] = None,
    strategy: Annotated[
        LoadBalancingStrategy, typer.Option(help="How partitions change hands.")
    ] = LoadBalancingStrategy.COOPERATIVE,
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="Between two looks at a settled group.")
    ] = "10s",
    expiration: options.Expiration = "60s",
    hours: Annotated[float, typer.Option(help="Of virtual time.")] = 1.0,
    latency_ms: Annotated[float, typer.Option(help="Of a storage operation, on average.")] = 20.0,
    seed: Annotated[int, typer.Option(help="Same seed, same history.")] = 0,
    output: Annotated[
        options.OutputFormat, typer.Option("--format", help="json: for a program.")
    ] = options.OutputFormat.TABLE,
) -> int:
    """Simulate a fleet of the real processor: time to balance, moves, storage operations.

    Nothing outside is touched: store, hub and time are simulated, the processors are not.

    Exit codes: 0 simulated, 2 something given cannot work.
    """
    script = Script(
        partition_count=partitions,
        processor_count=processors,
        events=[parse_event(text) for text in event or ()],
        duration=timedelta(hours=hours),
        latency=timedelta(milliseconds=latency_ms),
        config=EventProcessorConfig(
            load_balancing_strategy=strategy,
            load_balancing_interval=parse_duration("--interval", interval),
            ownership_expiration=parse_duration("--expiration", expiration),
            uses_store_thread=False,
        ),
        seed=seed,
    )
    report = report_of(play(script, memory_account))
    if output is options.OutputFormat.JSON:
        print(json.dumps(asdict(report)))
    else:
        _show(report)
    return OK


def memory_account(now: Callable[[], datetime]) -> Callable[[], CheckpointStore]:
    """Make an account in memory that lives by this clock; return what makes its stores."""
    account = MemoryAccount(now=now)
    return lambda: MemoryCheckpointStore(account)


def _show(report: Report) -> None:
    rows = [asdict(row) for row in report.events]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for row in rows:
        table.add_column(row["event"], justify="right")
    for name in list(rows[0])[1:]:
        table.add_row(_spoken(name), *(_cell(row[name]) for row in rows))
    totals = Table(box=None, pad_edge=False, show_header=False)
    totals.add_column()
    totals.add_column(justify="right")
    for name, value in asdict(report.totals).items():
        totals.add_row(_spoken(name), _cell(value))
    console = Console()
    console.print(table)
    console.print("\nin all")
    console.print(totals)


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: float | None) -> str:
    if value is None:
        return "never"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"

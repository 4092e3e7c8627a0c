"""``eventproc simulate``: what a fleet will do and cost, answered on virtual time."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc.cli import options
from eventproc.cli.exits import OK
from eventproc.cli.extras import needing
from eventproc.cli.values import parse_duration
from eventproc.config import EventProcessorConfig
from eventproc.membership import LeaseMode
from eventproc.models import LoadBalancingStrategy
from eventproc.ports import CheckpointStore
from eventproc.simulation import (
    SYSTEMS,
    History,
    PriceList,
    Report,
    Script,
    parse_event,
    play,
    report_of,
)

OURS: Final = "eventproc"
"""What the compared systems are compared with."""

COMPARED: Final = (
    "slowest\nbalance s",
    "moves/\nleast",
    "moved\ntwice",
    "con-\nflicts",
    "steals\na cycle",
    "dupli-\ncates",
    "worst\ngap s",
    "spread\nin the end",
    "lists\nper hour",
    "writes\nper hour",
)
COMPARISON_WIDTH: Final = 128


def simulate(
    partitions: Annotated[int, typer.Option(help="Of the event hub.")] = 32,
    processors: Annotated[int, typer.Option(help="That start at once in the beginning.")] = 4,
    event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT:COUNT[@TIME]",
            help="What happens: join, leave, crash, restart, bounce, roll or grow. Repeat it for "
            "more; without times they are spread evenly.",
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
    lease_mode: Annotated[
        LeaseMode, typer.Option(help="What is renewed: each partition, or one session for all.")
    ] = LeaseMode.PARTITION,
    hours: Annotated[float, typer.Option(help="Of virtual time.")] = 1.0,
    latency_ms: Annotated[float, typer.Option(help="Of a storage operation, on average.")] = 20.0,
    seed: Annotated[int, typer.Option(help="Same seed, same history.")] = 0,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Play the same with the rules of Azure's SDKs and of five published descriptions.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw it, into a .svg or .png file.", show_default=False),
    ] = None,
    price_per_10k_writes: Annotated[
        float, typer.Option(help="US dollars; assumed is Azure's list price for hot LRS, East US.")
    ] = PriceList().writes,
    price_per_10k_lists: Annotated[
        float, typer.Option(help="US dollars, for pages of 5,000 blobs; assumed likewise.")
    ] = PriceList().lists,
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
            lease_mode=lease_mode,
            uses_store_thread=False,
        ),
        seed=seed,
    )
    prices = PriceList(writes=price_per_10k_writes, lists=price_per_10k_lists)
    if plot is not None:
        _check_plot(plot)
    if compare:
        _compare(script, prices, plot, output)
        return OK
    history = play(script, memory_account)
    report = report_of(history, prices)
    if plot is not None:
        from eventproc.simulation.plot import draw  # noqa: PLC0415 - an extra, checked above

        draw(history, report, _title(script), plot)
    if output is options.OutputFormat.JSON:
        print(json.dumps(asdict(report)))
    else:
        _show(report)
    return OK


def _check_plot(path: Path) -> None:
    """Find out before the work whether its result can be drawn."""
    with needing("plot"):
        from eventproc.simulation.plot import check_path  # noqa: PLC0415 - it is an extra
    check_path(path)


def _compare(
    script: Script, prices: PriceList, plot: Path | None, output: options.OutputFormat
) -> None:
    with needing("eventhubs"):
        habits = {name: make() for name, make in SYSTEMS.items()}
    played: list[tuple[str, History, Report]] = []
    with Console(stderr=True).status("") as status:
        for name in (OURS, *habits):
            status.update(name)
            history = play(script, memory_account, habits.get(name))
            played.append((name, history, report_of(history, prices)))
    if plot is not None:
        from eventproc.simulation.plot import draw_comparison  # noqa: PLC0415 - as above

        events = ", ".join(["start", *(event.name for _, event in script.timed())])
        draw_comparison(played, f"{_title(script)}: {events}", plot)
    if output is options.OutputFormat.JSON:
        print(json.dumps({"systems": [{"system": n, **asdict(r)} for n, _, r in played]}))
    else:
        _show_comparison([(name, report) for name, _, report in played])


def _title(script: Script) -> str:
    config = script.config
    return (
        f"{script.partition_count:,} partitions, {script.processor_count:,} processors: "
        f"{config.load_balancing_strategy.value}, leases by {config.lease_mode.value}, interval "
        f"{config.load_balancing_interval.total_seconds():g} s, expiration "
        f"{config.ownership_expiration.total_seconds():g} s, seed {script.seed}"
    )


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


def _show_comparison(reports: Sequence[tuple[str, Report]]) -> None:
    """One line for each system, of its slowest event and of the totals."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for name in COMPARED:
        table.add_column(name, justify="right", no_wrap=True)
    for name, report in reports:
        times = [event.seconds_to_balance for event in report.events]
        totals = report.totals
        table.add_row(
            name,
            _cell(None if None in times else max(seconds or 0.0 for seconds in times)),
            f"{totals.moves:,}/{totals.moves_minimum:,}",
            _cell(totals.moved_twice),
            _cell(totals.conflicts),
            _cell(totals.steals_per_cycle_max),
            _cell(totals.duplicates),
            _cell(totals.worst_gap_seconds),
            _cell(totals.spread_final),
            _cell(totals.lists_per_hour),
            _cell(totals.writes_per_hour),
        )
    console = Console()
    console.width = max(console.width, COMPARISON_WIDTH)
    console.print(table)


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: float | None) -> str:
    if value is None:
        return "never"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"

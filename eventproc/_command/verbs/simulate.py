"""``eventproc simulate``: run a group of processors on virtual time, and report its cost."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc._base.settings import Within
from eventproc._command.arguments import options
from eventproc._command.arguments.config_options import BALANCING
from eventproc._command.arguments.grouped import ConfigOptions
from eventproc._command.arguments.scaling import RulesOption, SimulatedScalingOptions
from eventproc._command.terminal.console import plain_table, standard_output
from eventproc._core.option_values import DURATION_MAX
from eventproc._delivery.config import EventProcessorConfig
from eventproc._simulation import (
    PRICES,
    EventReport,
    LoadReport,
    PriceList,
    Report,
    ScalingReport,
    Script,
    parse_event,
    report_of,
    run_script,
    scaling_report_of,
)
from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore

LATENCY_MAX: Final = timedelta(hours=1)
"""More than any service takes: long before, no group would be balanced."""


class PricedStore(StrEnum):
    """A store whose operations have a price."""

    BLOB = "blob"
    TABLES = "tables"
    POSTGRES = "postgres"


def simulate(
    *,
    partitions: Annotated[int, typer.Option(help="The number of partitions of the hub.")] = 32,
    processors: Annotated[int, typer.Option(help="The number of processors at the start.")] = 4,
    event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT:COUNT[@TIME]",
            help="An event in the group: join, leave, crash, restart, bounce, roll or grow. With "
            "--autoscale also load: from then on COUNT events arrive in a second. Repeat it for "
            "more. Without times, the events are spread evenly.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[EventProcessorConfig, ConfigOptions(BALANCING)],
    weight: Annotated[
        list[float] | None,
        typer.Option(
            metavar="N",
            help="The weight of the first processor, with the placement Weighted. Repeat it for "
            "the next ones; further processors have the same weights again.",
            show_default=False,
        ),
    ] = None,
    hours: Annotated[
        float,
        Within(above=0, most=DURATION_MAX // timedelta(hours=1)),
        typer.Option(help="The simulated time, in hours."),
    ] = 1.0,
    latency_ms: Annotated[
        float,
        Within(least=0, most=LATENCY_MAX // timedelta(milliseconds=1)),
        typer.Option(help="The mean time of a storage operation."),
    ] = 20.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw the result to a .svg or .png file.", show_default=False
        ),
    ] = None,
    store: Annotated[
        PricedStore,
        typer.Option(
            help="The store whose price per month is reported. It changes nothing else; with "
            "PostgreSQL, real processors see changes sooner than these."
        ),
    ] = PricedStore.BLOB,
    price_per_10k_writes: Annotated[
        float | None,
        typer.Option(
            help="In US dollars. By default Azure's list price of the store (LRS, hot, East US).",
            show_default=False,
        ),
    ] = None,
    price_per_10k_lists: Annotated[
        float | None,
        typer.Option(
            help="In US dollars, for pages of 5,000 blobs or 1,000 entities. By default the list "
            "price of the store.",
            show_default=False,
        ),
    ] = None,
    autoscaling: SimulatedScalingOptions,
    rules: RulesOption,
    output: options.Format = options.OutputFormat.TABLE,
) -> None:
    """Simulate a group, or its scaling: time to balance, moves, storage operations, monthly price.

    It also shows for how long events stay unread (worst gap), and how many are delivered twice.
    Operations are counted per hour, their price per month. With --autoscale the rule of `eventproc
    scale` decides the number of processors, while the load changes. The processors are the real
    ones. Store, hub and time are simulated in this process.

    Exit codes: 0 simulated, 2 an option is wrong.
    """
    script = Script(
        partition_count=partitions,
        processor_count=processors,
        events=[parse_event(text) for text in event or ()],
        duration=timedelta(hours=hours),
        latency=timedelta(milliseconds=latency_ms),
        config=replace(config, uses_store_thread=False),
        weights=tuple(weight or [1.0]),
        scaling=autoscaling.scaling(rules),
        seed=seed,
    )
    prices = _prices(store, writes=price_per_10k_writes, lists=price_per_10k_lists)
    if plot is not None:
        from eventproc._simulation.draw.plot import check_path  # noqa: PLC0415 - it is an extra

        check_path(plot)
    if weight and "Weighted" not in config.placement.name:
        raise ConfigurationError("--weight has no effect without --placement Weighted: give both")
    history = run_script(script, memory_account)
    report = report_of(history, prices)
    scaling = script.scaling and scaling_report_of(history, script.scaling.rules)
    if plot is not None:
        from eventproc._simulation.draw.plot import draw  # noqa: PLC0415 - an extra, checked above

        draw(history, report, _title(script), plot)
    if output is options.OutputFormat.JSON:
        print(json.dumps(asdict(report) | ({"scaling": asdict(scaling)} if scaling else {})))
    elif scaling:
        _show_scaling(report, scaling, _left_out(script, prices, store))
    else:
        _show_report(report, _left_out(script, prices, store))


def _prices(store: PricedStore, *, writes: float | None, lists: float | None) -> PriceList:
    """Return the prices of the store, but for those that are given."""
    prices = PRICES[store.value]
    return replace(
        prices,
        writes=prices.writes if writes is None else writes,
        lists=prices.lists if lists is None else lists,
    )


def _left_out(script: Script, prices: PriceList, store: PricedStore) -> str:
    """Return what the dollars do not include."""
    if store is PricedStore.POSTGRES:
        return "PostgreSQL has no price for each operation: add that of its server."
    every = script.config.checkpoint_policy.interval or timedelta(seconds=5)
    each = prices.of_a_write_every(every)
    return (
        f"Without checkpoints. With one every {every.total_seconds():g} s they cost up to "
        f"${each * script.partition_count:,.2f} a month more: ${each:,.2f} for each partition that "
        "is always busy."
    )


def _title(script: Script) -> str:
    config = script.config
    return (
        f"{script.partition_count:,} partitions, {script.processor_count:,} processors: "
        f"{config.load_balancing_strategy.value}, {config.placement.name}, "
        f"interval {config.load_balancing_interval.total_seconds():g} s, expiration "
        f"{config.ownership_expiration.total_seconds():g} s, seed {script.seed}"
    )


def _show_report(report: Report, remark: str) -> None:
    """Print a column for each event of the script, the totals, and a remark about them."""
    standard_output().print(_events(report.events))
    _show_totals(asdict(report.totals), remark)


def _show_scaling(report: Report, scaling: ScalingReport, remark: str) -> None:
    """Print a column for each event, a row for each change, the totals, and a remark on these."""
    numbers = ("at seconds", "load", "backlog", "running", "wanted")
    votes = plain_table(*numbers, "because", numbers=numbers)
    for vote in scaling.votes:
        votes.add_row(
            *(_cell(value) for value in (vote.at_seconds, vote.load, vote.backlog, vote.running)),
            _cell(vote.replicas),
            vote.reason,
        )
    console = standard_output()
    console.print(_events(scaling.events))
    console.print()
    console.print(votes)
    _show_totals({"process_hours": scaling.process_hours} | asdict(report.totals), remark)


def _events(events: Sequence[EventReport] | Sequence[LoadReport]) -> Table:
    """Return a column for each event, and a row for each figure."""
    rows = [asdict(event) for event in events]
    events_of_script = [row["event"] for row in rows]
    table = plain_table("", *events_of_script, numbers=events_of_script)
    for name in list(rows[0])[1:]:
        label = "load per second" if name == "load" else name.replace("_", " ")
        table.add_row(label, *(_cell(row[name]) for row in rows))
    return table


def _show_totals(totals: Mapping[str, float], remark: str) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in totals.items():
        text = f"{value:,.2f}" if name == "dollars_per_month" else _cell(value)
        table.add_row(name.replace("_", " "), text)
    console = standard_output()
    console.print("\ntotal")
    console.print(table)
    console.print(f"\n{remark}", soft_wrap=True)


def _cell(value: float | Sequence[int] | None) -> str:
    if value is None:
        return "never"
    if isinstance(value, Sequence):
        return " ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def memory_account(now: Callable[[], datetime]) -> Callable[[], CheckpointStore]:
    """Make an account in memory with this clock; return a function that makes its stores."""
    account = MemoryAccount(now=now)
    return lambda: MemoryCheckpointStore(account)

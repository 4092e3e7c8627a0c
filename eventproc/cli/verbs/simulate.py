"""``eventproc simulate``: run a group of processors on virtual time, and report its cost."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc.cli.arguments import options
from eventproc.cli.arguments.grouped import ConfigOptions
from eventproc.cli.arguments.scaling import ScalingOptions, SimulatedScalingOptions
from eventproc.cli.arguments.settings import BALANCING
from eventproc.cli.terminal.exits import OK
from eventproc.cli.terminal.simulated import show_comparison, show_report, show_scaling
from eventproc.config import EventProcessorConfig
from eventproc.core.placement.even import Even
from eventproc.core.placement.ordinal import Ordinal
from eventproc.core.placement.published import Published
from eventproc.core.placement.ring import Ring
from eventproc.core.placement.weighted import Weighted
from eventproc.errors import ConfigurationError
from eventproc.extras import needing
from eventproc.models import LoadBalancingStrategy
from eventproc.ports import CheckpointStore
from eventproc.simulation import (
    PRICES,
    SYSTEMS,
    History,
    PriceList,
    Report,
    Script,
    parse_event,
    play,
    report_of,
    scaling_report_of,
)
from eventproc.simulation.other_systems.external import ClientProfile

OURS: Final[Mapping[str, Mapping[str, Any]]] = {
    "eventproc": {},
    "eventproc-release": {"load_balancing_strategy": LoadBalancingStrategy.RELEASE},
    "eventproc-weighted": {"placement": Weighted()},
    "eventproc-ordinal": {"placement": Ordinal()},
    "eventproc-ring": {"placement": Ring()},
    "eventproc-published": {"placement": Published(Even())},
}
"""The rows of this library in a comparison: the settings in which each differs from the options."""

PLACEMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    placement.name: {"placement": placement}
    for placement in (
        Even(),
        Weighted(),
        Ordinal(),
        Ordinal(literal=True),
        Ring(),
        Ring(literal=True),
        Ring(bound=2.0),
        Published(Even()),
    )
}
"""The rows of a comparison of placements."""


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
    hours: Annotated[float, typer.Option(help="The simulated time, in hours.")] = 1.0,
    latency_ms: Annotated[float, typer.Option(help="The mean time of a storage operation.")] = 20.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Simulate also the strategy release, every placement, the rules of the Azure SDKs "
            "and those of five published designs.",
        ),
    ] = False,
    compare_placements: Annotated[
        bool,
        typer.Option(
            "--compare-placements",
            help="Simulate every placement, with the other options as given.",
        ),
    ] = False,
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
    rules: ScalingOptions,
    output: options.Format = options.OutputFormat.TABLE,
) -> int:
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
        from eventproc.simulation.draw.plot import check_path  # noqa: PLC0415 - it is an extra

        check_path(plot)
    compares = compare or compare_placements
    if weight and not (compares or "Weighted" in config.placement.name):
        raise ConfigurationError("--weight has no effect without --placement Weighted: give both")
    if compare and compare_placements:
        raise ConfigurationError("give --compare or --compare-placements: the first has both")
    if script.scaling and compares:
        raise ConfigurationError(
            "give either --autoscale or a comparison: other systems have no scaler"
        )
    if compares:
        _compare(script, PLACEMENTS if compare_placements else OURS, compare, prices, plot, output)
        return OK
    history = play(script, memory_account)
    report = report_of(history, prices)
    scaling = script.scaling and scaling_report_of(history, script.scaling.rules)
    if plot is not None:
        from eventproc.simulation.draw.plot import draw  # noqa: PLC0415 - an extra, checked above

        draw(history, report, _title(script), plot)
    if output is options.OutputFormat.JSON:
        print(json.dumps(asdict(report) | ({"scaling": asdict(scaling)} if scaling else {})))
    elif scaling:
        show_scaling(report, scaling, _left_out(script, prices, store))
    else:
        show_report(report, _left_out(script, prices, store))
    return OK


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


def _compare(
    script: Script,
    ours: Mapping[str, Mapping[str, Any]],
    with_others: bool,
    prices: PriceList,
    plot: Path | None,
    output: options.OutputFormat,
) -> None:
    profiles = _profiles() if with_others else {}
    played: list[tuple[str, History, Report]] = []
    with Console(stderr=True).status("") as status:
        for name in (*ours, *profiles):
            status.update(name)
            played_script = replace(script, config=replace(script.config, **ours.get(name, {})))
            history = play(played_script, memory_account, profiles.get(name))
            played.append((name, history, report_of(history, prices)))
    if plot is not None:
        from eventproc.simulation.draw.plot import draw_comparison  # noqa: PLC0415 - as above

        events = ", ".join(["start", *(event.name for _, event in script.timed())])
        draw_comparison(played, f"{_size(script)}: {events}; {_settings(script)}", plot)
    if output is options.OutputFormat.JSON:
        print(json.dumps({"systems": [{"system": n, **asdict(r)} for n, _, r in played]}))
    else:
        show_comparison([(name, report) for name, _, report in played])


def _profiles() -> dict[str, ClientProfile]:
    with needing("eventhubs"):
        return {name: make() for name, make in SYSTEMS.items()}


def _title(script: Script) -> str:
    config = script.config
    return (
        f"{_size(script)}: {config.load_balancing_strategy.value}, {config.placement.name}, "
        f"{_settings(script)}"
    )


def _size(script: Script) -> str:
    return f"{script.partition_count:,} partitions, {script.processor_count:,} processors"


def _settings(script: Script) -> str:
    config = script.config
    return (
        f"leases by {config.lease_mode.value}, interval "
        f"{config.load_balancing_interval.total_seconds():g} s, expiration "
        f"{config.ownership_expiration.total_seconds():g} s, seed {script.seed}"
    )


def memory_account(now: Callable[[], datetime]) -> Callable[[], CheckpointStore]:
    """Make an account in memory with this clock; return a function that makes its stores."""
    account = MemoryAccount(now=now)
    return lambda: MemoryCheckpointStore(account)

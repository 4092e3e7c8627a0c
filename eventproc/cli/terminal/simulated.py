"""Tables of a simulated group."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Final

from rich.table import Table

from eventproc.cli.terminal.console import standard_output
from eventproc.simulation import LoadReport, Report, ScalingReport

_SCALING_ROWS: Final[Mapping[str, Callable[[LoadReport], str]]] = {
    "at seconds": lambda event: _cell(event.at_seconds),
    "load per second": lambda event: _cell(event.load),
    "processes": lambda event: " ".join(map(str, event.processes)),
    "reversals": lambda event: _cell(event.reversals),
    "backlog max": lambda event: _cell(event.backlog_max),
    "seconds to drain": lambda event: _cell(event.seconds_to_drain),
    "worst wait seconds": lambda event: _cell(event.worst_wait_seconds),
    "duplicates": lambda event: _cell(event.duplicates),
}


def show_report(report: Report, remark: str) -> None:
    """Print a column for each event of the script, the totals, and a remark about them."""
    rows = [asdict(row) for row in report.events]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for row in rows:
        table.add_column(row["event"], justify="right")
    for name in list(rows[0])[1:]:
        table.add_row(name.replace("_", " "), *(_cell(row[name]) for row in rows))
    standard_output().print(table)
    _show_totals(asdict(report.totals), remark)


def show_scaling(report: Report, scaling: ScalingReport, remark: str) -> None:
    """Print a column for each event, a row for each change, the totals, and a remark on these."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for event in scaling.events:
        table.add_column(event.event, justify="right")
    for name, show in _SCALING_ROWS.items():
        table.add_row(name, *(show(event) for event in scaling.events))
    votes = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("at seconds", "load", "backlog", "running", "wanted"):
        votes.add_column(name, justify="right")
    votes.add_column("because")
    for vote in scaling.votes:
        votes.add_row(
            *(_cell(value) for value in (vote.at_seconds, vote.load, vote.backlog, vote.running)),
            _cell(vote.replicas),
            vote.reason,
        )
    console = standard_output()
    console.print(table)
    console.print()
    console.print(votes)
    _show_totals({"process_hours": scaling.process_hours} | asdict(report.totals), remark)


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


def _cell(value: float | None) -> str:
    if value is None:
        return "never"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"

"""Tables of a simulated group."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.table import Table

from eventproc._command.terminal.console import plain_table, standard_output
from eventproc._simulation import EventReport, LoadReport, Report, ScalingReport


def show_report(report: Report, remark: str) -> None:
    """Print a column for each event of the script, the totals, and a remark about them."""
    standard_output().print(_events(report.events))
    _show_totals(asdict(report.totals), remark)


def show_scaling(report: Report, scaling: ScalingReport, remark: str) -> None:
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

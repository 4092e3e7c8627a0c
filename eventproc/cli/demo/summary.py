"""The report for people."""

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eventproc.cli.demo.flights import Logbook
from eventproc.cli.demo.report import Report

TOP: Final = 10


def print_summary(report: Report, console: Console) -> None:
    """Say what the demo found: the result, the changes, the accounts."""
    _print(console, f"The {TOP} aircraft that flew most, from the state that the handlers stored")
    console.print(_top_aircraft(report.logbook))
    _print(console, "What happened to the group")
    console.print(_changes(report))
    _print(console, "The accounts")
    console.print(_accounts(report))
    console.print(
        f"{report.partition_count} partitions, store: {report.store}, {report.seconds:.0f} seconds"
    )


def _print(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, "bold"))


def _top_aircraft(logbook: Logbook) -> Table:
    table = _table()
    for name in ("aircraft", "flights", "miles", "hours late", "longest run on time"):
        table.add_column(name, justify="left" if name == "aircraft" else "right")
    for aircraft, figures in logbook.top(TOP):
        table.add_row(
            aircraft,
            f"{figures[Logbook.FLIGHTS]:,}",
            f"{figures[Logbook.MILES]:,}",
            f"{figures[Logbook.LATE_MIN] / 60:,.0f}",
            f"{figures[Logbook.LONGEST_RUN]:,}",
        )
    return table


def _changes(report: Report) -> Table:
    table = _table()
    table.add_column("what")
    for name in ("seconds to balance", "moves", "fewest possible"):
        table.add_column(name, justify="right")
    for change in report.changes:
        took = change.seconds_to_balance
        table.add_row(
            f"{change.kind} {change.who}",
            "never" if took is None else f"{took:.1f}",
            "?" if change.moves is None else str(change.moves),
            str(change.moves_minimum),
        )
    return table


def _accounts(report: Report) -> Table:
    accounts, truth = report.accounts, report.truth
    table = _table()
    table.add_column("what")
    table.add_column("count", justify="right")
    table.add_column("which means")
    aircraft = len(truth.figures_by_aircraft)
    rows = [
        ("published", accounts.published, "events that the hub holds", ""),
        ("handled", accounts.handled, "of them, given to a handler", ""),
        ("lost", accounts.lost, "never given to one", "red" if accounts.lost else "green"),
        ("duplicates", accounts.duplicates, "given a second time; the state has them once", ""),
        ("", report.duplicates_unexplained, "of these, not by the kill or the freeze", ""),
        ("hand-overs", report.handovers, "partitions given by one live process to another", ""),
    ]
    for name, count, meaning, style in rows:
        table.add_row(name, Text(f"{count:,}", style), meaning)
    verdict = Text("equal", "green") if report.result_matches else Text("DIFFERENT", "red")
    table.add_row(
        "result", verdict, f"to the figures of {aircraft:,} aircraft straight from the file"
    )
    for problem in report.problems:
        table.add_row("problem", Text("!", "red"), problem)
    return table


def _table() -> Table:
    return Table(box=None, pad_edge=False, header_style="dim")

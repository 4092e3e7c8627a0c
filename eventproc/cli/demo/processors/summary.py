"""The report of ``eventproc demo`` as tables."""

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eventproc.cli.demo.drawing import add_counts, add_problems, print_title, report_table
from eventproc.cli.demo.flights import Logbook
from eventproc.cli.demo.processors.report import Report

TOP: Final = 10


def print_summary(report: Report, console: Console) -> None:
    """Print the result, the changes of the group and the accounts."""
    print_title(
        console, f"The {TOP} aircraft that flew most, from the state that the handlers stored"
    )
    console.print(_top_aircraft(report.logbook))
    print_title(console, "What happened to the group")
    console.print(_changes(report))
    print_title(console, "The accounts")
    console.print(_accounts(report))
    console.print(
        f"{report.partition_count} partitions, store: {report.store}, {report.seconds:.0f} seconds"
    )


def _top_aircraft(logbook: Logbook) -> Table:
    table = report_table("aircraft", "flights", "miles", "hours late", "longest run on time")
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
    table = report_table("what", "seconds to balance", "moves", "fewest possible")
    for change in report.changes:
        took = change.seconds_to_balance
        table.add_row(
            f"{change.kind} {change.processors}",
            "never" if took is None else f"{took:.1f}",
            "?" if change.moves is None else str(change.moves),
            str(change.moves_minimum),
        )
    return table


def _accounts(report: Report) -> Table:
    accounts, truth = report.accounts, report.truth
    table = report_table("what", "count", "which means")
    aircraft = len(truth.figures_by_aircraft)
    rows = [
        ("published", accounts.published, "events that the hub holds"),
        ("handled", accounts.handled, "events that a handler was given"),
        ("lost", accounts.lost, "events that no handler was given"),
        (
            "duplicates",
            accounts.duplicates,
            "events given a second time; the state counts them once",
        ),
        (
            "unexplained",
            report.duplicates_unexplained,
            "duplicates that neither the kill nor the freeze caused",
        ),
        ("hand-overs", report.handovers, "partitions given by one live process to another"),
    ]
    add_counts(table, rows)
    verdict = Text("equal", "green") if report.state_matches else Text("DIFFERENT", "red")
    table.add_row(
        "result", verdict, f"to the figures of {aircraft:,} aircraft straight from the file"
    )
    add_problems(table, report.problems)
    return table

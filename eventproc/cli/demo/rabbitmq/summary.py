"""The report of ``eventproc demo-rabbitmq`` as tables."""

from rich.console import Console
from rich.table import Table

from eventproc.cli.demo.drawing import add_counts, add_problems, print_title, report_table
from eventproc.cli.demo.rabbitmq.report import Report


def print_summary(report: Report, console: Console) -> None:
    """Print what happened to the group, and the accounts."""
    print_title(console, "What happened to the pods")
    console.print(_steps(report))
    print_title(console, "The accounts")
    console.print(_accounts(report))
    console.print(
        f"{report.queue_count} queues, store: {report.store}, {report.seconds:.0f} seconds, "
        f"{report.api_request_count} requests to the Kubernetes API"
    )


def _steps(report: Report) -> Table:
    table = report_table("what", "seconds to settle", "queues moved")
    for step in report.steps:
        took = "never" if step.seconds is None else f"{step.seconds:.1f}"
        table.add_row(step.what, took, str(step.moves))
    return table


def _accounts(report: Report) -> Table:
    found = report.accounts
    table = report_table("what", "count", "which means")
    rows = [
        ("published", found.published, "orders, each confirmed by the broker"),
        ("handled", found.handled, "orders that a handler was given"),
        ("lost", found.lost, "orders that no handler was given"),
        ("out of order", found.out_of_order, "handled before an earlier order of the customer"),
        ("duplicates", found.duplicates, "orders given a second time"),
        (
            "unexplained",
            found.duplicates_unexplained,
            "duplicates that neither the kill nor the freeze caused",
        ),
        ("overlaps", found.overlaps, "calls of two pods for one queue at the same time"),
        ("unexplained", found.overlaps_unexplained, "overlaps with no frozen call among the two"),
    ]
    add_counts(table, rows)
    add_problems(table, report.problems)
    return table

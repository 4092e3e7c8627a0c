"""The report of ``eventproc demo-spark``: whether an event was lost, and whether results match."""

from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eventproc.cli.demo.drawing import add_counts, add_problems, print_title, report_table
from eventproc.cli.demo.report import DemoReport
from eventproc.cli.demo.spark.weeks import AIRPORTS, Figures, Weeks

WEEKS_SHOWN: Final = 8


@dataclass(frozen=True, kw_only=True)
class Report(DemoReport):
    """The results of the demo."""

    weeks: Weeks
    """From the windowed aggregate."""

    weeks_truth: Weeks
    """Computed directly from the data."""

    at_end_count: int
    """Partitions whose checkpoint is at their last event."""

    batch_count: int
    killed: int
    """The process id of the killed executor."""

    @property
    def weeks_match(self) -> bool:
        """Whether every figure of every week is the same."""
        return self.weeks == self.weeks_truth

    @property
    def is_at_end(self) -> bool:
        """Whether every partition's checkpoint is at its last event."""
        return self.at_end_count == self.partition_count

    @property
    def is_good(self) -> bool:
        """Whether the demo showed what it promises."""
        return super().is_good and self.weeks_match and self.is_at_end

    def as_json(self) -> dict[str, object]:
        """The report as JSON."""
        return super().as_json() | {
            "aggregate_matches": self.weeks_match,
            "weeks": len(self.weeks),
            "state_matches": self.state_matches,
            "partitions_at_end": self.at_end_count,
            "batches": self.batch_count,
            "killed_executor": self.killed,
        }


def print_report(report: Report, console: Console) -> None:
    """Print the weeks and the accounts."""
    print_title(console, f"The {WEEKS_SHOWN} busiest weeks, from Spark's windowed aggregate")
    console.print(_weeks(report.weeks))
    print_title(console, "The accounts")
    console.print(_accounts(report))
    console.print(
        f"{report.partition_count} partitions, {report.batch_count} batches, executor "
        f"{report.killed} killed, store: {report.store}, {report.seconds:.0f} seconds"
    )


def _weeks(weeks: Weeks) -> Table:
    table = report_table(
        "week of", *(f"{airport} flights" for airport in AIRPORTS), "miles", "hours late"
    )
    by_week = {week: [weeks.get((week, a), Figures()) for a in AIRPORTS] for week, _ in weeks}
    busiest = sorted(by_week, key=lambda week: -sum(one.flights for one in by_week[week]))
    for week in sorted(busiest[:WEEKS_SHOWN]):
        figures = by_week[week]
        table.add_row(
            week,
            *(f"{one.flights:,}" for one in figures),
            f"{sum(one.miles for one in figures):,}",
            f"{sum(one.late_min for one in figures) / 60:,.0f}",
        )
    return table


def _accounts(report: Report) -> Table:
    accounts = report.accounts
    aircraft = len(report.truth.figures_by_aircraft)
    table = report_table("what", "count", "which means")
    rows = [
        ("published", accounts.published, "events that the hub holds"),
        ("handled", accounts.handled, "events that a handler was given on an executor"),
        ("lost", accounts.lost, "events that no handler was given"),
        (
            "duplicates",
            accounts.duplicates,
            "events given again, as a replay; the state counts them once",
        ),
    ]
    add_counts(table, rows)
    verdicts = [
        ("checkpoints", report.is_at_end, f"at the end of {report.at_end_count} partitions"),
        ("aggregate", report.weeks_match, "by week and airport: equal to what the file gives"),
        ("state", report.state_matches, f"of {aircraft:,} aircraft: equal to what the file gives"),
    ]
    for name, is_so, meaning in verdicts:
        table.add_row(name, Text("right", "green") if is_so else Text("WRONG", "red"), meaning)
    add_problems(table, report.problems)
    return table

"""Run all benchmarks, and summarize the results in a table.

    make bench                          # all of them, half an hour
    make bench ARGS=--quick             # the smallest sizes: do they run?
    make bench ARGS='group receive'     # only these
    make bench ARGS='--minutes 60'
    make bench ARGS=--again             # no run: the table of the last results

A benchmark is a program here with the options of ``_rows``. Its rows are kept as
``build/bench/NAME.json``. One that fails, or for which no time is left, is named at the end.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks._rows import WIDTH, Row, cell_text, print_progress, table_of
from benchmarks._summary import Comparison, comparisons

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE.parent / "build/bench"

FIRST: Final = ("group", "receive", "loop")
"""The most important benchmarks, which run first, in case the time is too short for all."""

ARGUMENTS: Final = {
    "receive": ("--body", "100", "--batch", "300", "--candidates",
                "eventproc", "eventproc-columns", "azure-aio", "azure-aio-3000", "azure-sync-5ms",
                "bare"),
    "scale": ("4x2", "32x4", "256x32"),
}  # fmt: skip
"""Arguments of benchmarks that would take too long with their defaults."""

ROWS_MAX: Final = 20
"""The most rows to print of a benchmark without comparisons."""

SHARE_MAX: Final = 0.5
"""The largest part of the remaining time that one benchmark may take."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of one benchmark."""

    name: str
    seconds: float
    rows: Sequence[Row] = ()
    failure: str = ""


def programs(wanted: Sequence[str]) -> list[str]:
    """Return the names of the programs that print rows, the most important ones first."""
    found = [
        path.stem
        for path in sorted(HERE.glob("[!_]*.py"))
        if "benchmarks._rows" in path.read_text()
    ]
    unknown = set(wanted) - set(found)
    if unknown:
        raise SystemExit(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(found)}")
    found.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    return [name for name in found if not wanted or name in wanted]


def run(name: str, *, is_quick: bool, seconds_max: float) -> Outcome:
    """Run one benchmark; kill it after *seconds_max*."""
    path = HERE / f"{name}.py"
    arguments = ("--quick",) if is_quick else ARGUMENTS.get(name, ())
    command = [sys.executable, str(path), "--format", "json", *arguments]
    begun_s = time.monotonic()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its child processes can be killed with it
    )
    try:
        out, err = process.communicate(timeout=seconds_max)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)  # and its child processes
        process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return Outcome(name=name, seconds=seconds_max, failure="took too long")
    seconds = time.monotonic() - begun_s
    if process.returncode:
        last = (err.strip().splitlines() or ["it printed nothing"])[-1]
        return Outcome(name=name, seconds=seconds, failure=last[:200])
    try:
        return Outcome(name=name, seconds=seconds, rows=as_rows(out))
    except ValueError as error:
        return Outcome(name=name, seconds=seconds, failure=f"no rows: {error}")


def as_rows(text: str) -> Sequence[Row]:
    """Parse the output of a benchmark: a list of flat mappings."""
    rows = json.loads(text)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("not a list of rows")
    return rows


def run_all(names: Sequence[str], *, is_quick: bool, minutes: float) -> list[Outcome]:
    """Run the benchmarks one after another, and show the progress."""
    outcomes = []
    until_s = time.monotonic() + 60 * minutes
    for name in names:
        print_progress(name)
        share = 1 if name == names[-1] else SHARE_MAX
        seconds_max = max(share * (until_s - time.monotonic()), 1)
        outcome = run(name, is_quick=is_quick, seconds_max=seconds_max)
        outcomes.append(outcome)
        if not outcome.failure:
            (RESULTS / f"{name}.json").write_text(json.dumps(outcome.rows, indent=1))
        print_progress(f"{name:12} {outcome.seconds:6.0f} s  {outcome.failure or 'done'}")
    return outcomes


def summary(found: Sequence[Comparison]) -> Table:
    """Return a table of eventproc's figures, those of others, and their ratios."""
    table = Table(title="Ours beside others", title_justify="left", box=SIMPLE_HEAD)
    for name in ("", "case", "figure"):
        table.add_column(name)
    for name in ("ours", "the usual one", "x", "the best one", "x", "the limit"):
        table.add_column(name, justify="right")
    before = ("", "")
    for one in found:
        table.add_row(
            one.benchmark if one.benchmark != before[0] else "",
            one.case if (one.benchmark, one.case) != before else "",
            one.figure,
            cell_text(one.ours),
            cell_text(one.other),
            coloured(one.times_better),
            cell_text(one.best),
            coloured(one.times_better_than_best) if one.best is not None else "",
            cell_text(one.limit),
        )
        before = (one.benchmark, one.case)
    return table


def coloured(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"[{'green' if ratio >= 1 else 'red'}]{ratio:.3g}[/]"


def machine() -> str:
    """Return date, machine and Python version as text."""
    now = datetime.now(UTC).date().isoformat()
    return f"{now}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="the benchmarks to run; by default all")
    parser.add_argument("--quick", action="store_true", help="the smallest sizes")
    parser.add_argument("--minutes", type=float, default=30, help="the limit for all of them")
    parser.add_argument("--again", action="store_true", help="show the last results")
    given = parser.parse_args()
    names = programs(given.names)
    RESULTS.mkdir(parents=True, exist_ok=True)
    outcomes = [] if given.again else run_all(names, is_quick=given.quick, minutes=given.minutes)
    rows_by_name = {
        name: as_rows(path.read_text())
        for name in names
        if (path := RESULTS / f"{name}.json").exists()
    }
    found = [one for name, rows in rows_by_name.items() for one in comparisons(name, rows)]
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    compared = {one.benchmark for one in found}
    for name, rows in rows_by_name.items():
        if name not in compared and len(rows) <= ROWS_MAX:
            console.print(table_of(rows, name))
    if found:
        console.print(summary(found))
        console.print(f"{machine()}. All rows: {RESULTS}/*.json")
    failures = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failures:
        console.print(f"[red]{outcome.name}[/]: {outcome.failure}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()

"""What a fleet costs as it grows: the table of ``docs/scale.md``.

    .venv/bin/python benchmarks/scale.py [SIZE ...] [--lease-mode partition|session] [--csv FILE]

A size is PARTITIONSxPROCESSORS; without any, all sizes are played: some three minutes of work.
Every figure comes from the production processors, as many as are named, on virtual time. Each size
is played twice. First: all start at once; after a rest one joins; then one in ten crashes. Second:
all start, and a few of them are replaced one after the other, as in a rolling deploy.
"""

import csv
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from benchmarks._rows import Row, options, print_rows
from eventproc import EventProcessorConfig
from eventproc.cli.verbs.simulate import memory_account
from eventproc.models import LeaseMode
from eventproc.simulation import History, PriceList, Script, parse_event, play, report_of
from eventproc.simulation.price import HOURS_PER_MONTH
from eventproc.simulation.report import HOUR_S, EventReport, pages_listed

SIZES = ("4x2", "32x4", "256x32", "1000x100", "2500x250")
ROLLED_MAX = 4
REST_S = (20.0, 80.0)
"""Beginning and end of a time without changes, in which the steady rate is counted."""

JOIN_S, CRASH_S, END_S = 80, 110, 200
ROLL_S, ROLL_EACH_S = 20, 25


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the table."""

    size: str
    lease_mode: str
    event: str
    cycles: int | None
    seconds: float | None
    moves: int
    moves_least: int
    conflicts: int
    duplicates: int
    operations: int
    """Lists, writes and checkpoint operations of the whole fleet until it was balanced."""

    dollars: float
    """The price of these operations."""


@dataclass(frozen=True, kw_only=True)
class Steady:
    """The operations of a fleet on the store while nothing changes."""

    size: str
    lease_mode: str
    lists_per_hour: int
    writes_per_hour: int
    operations_per_second: float
    dollars_per_month: float


def main() -> None:
    arguments = options(__doc__, formats=("lines", "json"))
    arguments.add_argument("sizes", nargs="*", default=SIZES)
    arguments.add_argument("--lease-mode", type=LeaseMode, default=None, choices=list(LeaseMode))
    arguments.add_argument("--csv", type=Path, help="Write the lines of events here too.")
    given = arguments.parse_args()
    modes = [given.lease_mode] if given.lease_mode else list(LeaseMode)
    lines: list[Line] = []
    rows: list[Row] = []
    for size in SIZES[:1] if given.quick else given.sizes:
        for mode in modes:
            begun_s = time.process_time()
            steady, of_events = measure(size, mode)
            lines += of_events
            rows += [asdict(steady), *map(asdict, of_events)]
            if given.format == "json":
                continue
            print(json.dumps(asdict(steady)), flush=True)
            for line in of_events:
                print(json.dumps(asdict(line)), flush=True)
            print(f"# {time.process_time() - begun_s:.0f} s of CPU time", flush=True)
    if given.format == "json":
        print_rows(rows, "json")
    if given.csv:
        with given.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(asdict(lines[0])))
            writer.writeheader()
            writer.writerows(asdict(line) for line in lines)


def measure(size: str, mode: LeaseMode) -> tuple[Steady, list[Line]]:
    """Play one size with one lease mode."""
    partitions, processors = map(int, size.split("x"))
    crashing = max(processors // 10, 1)
    first = script(
        partitions, processors, mode, END_S, f"join:1@{JOIN_S}", f"crash:{crashing}@{CRASH_S}"
    )
    rolled = min(processors, ROLLED_MAX)
    second = script(
        partitions, processors, mode, ROLL_S + rolled * ROLL_EACH_S + 10, f"roll:{rolled}@{ROLL_S}"
    )
    history = play(first, memory_account)
    steady = steady_of(history, size, mode)
    lines = lines_of(history, size, mode)
    lines += lines_of(play(second, memory_account), size, mode)[1:]
    return steady, lines


def script(
    partitions: int, processors: int, mode: LeaseMode, duration_s: int, *events: str
) -> Script:
    return Script(
        partition_count=partitions,
        processor_count=processors,
        events=[parse_event(event) for event in events],
        duration=timedelta(seconds=duration_s),
        config=EventProcessorConfig(uses_store_thread=False, lease_mode=mode),
        seed=7,
    )


def steady_of(history: History, size: str, mode: LeaseMode) -> Steady:
    """Count the operations while nothing changed."""
    begin_s, end_s = REST_S
    hours = (end_s - begin_s) / HOUR_S
    lists = count_between(history.listings, begin_s, end_s) / hours
    writes = count_between(history.writes, begin_s, end_s) / hours
    pages = pages_listed(history, begin_s, end_s, PriceList()) / hours
    return Steady(
        size=size,
        lease_mode=mode.value,
        lists_per_hour=round(lists),
        writes_per_hour=round(writes),
        operations_per_second=round((lists + writes) / HOUR_S, 1),
        dollars_per_month=round(PriceList().of(writes=writes, pages=pages) * HOURS_PER_MONTH, 2),
    )


def lines_of(history: History, size: str, mode: LeaseMode) -> list[Line]:
    """Return a line for each event of the script."""
    return [line_of(event, history, size, mode) for event in report_of(history).events]


def line_of(event: EventReport, history: History, size: str, mode: LeaseMode) -> Line:
    begin_s = event.at_seconds
    end_s = history.duration_s if event.seconds_to_balance is None else (
        begin_s + event.seconds_to_balance + 0.001
    )  # fmt: skip
    writes = count_between(history.writes, begin_s, end_s)
    lists = count_between(history.listings, begin_s, end_s)
    checkpoints = count_between(history.checkpoint_operations, begin_s, end_s)
    dollars = PriceList().of(
        writes=writes + checkpoints, pages=pages_listed(history, begin_s, end_s, PriceList())
    )
    return Line(
        size=size,
        lease_mode=mode.value,
        event=event.event,
        cycles=event.cycles_to_balance,
        seconds=event.seconds_to_balance,
        moves=event.moves,
        moves_least=event.moves_minimum,
        conflicts=event.conflicts,
        duplicates=event.duplicates,
        operations=lists + writes + checkpoints,
        dollars=round(dollars, 4),
    )


def count_between(operations: Iterable[object], begin_s: float, end_s: float) -> int:
    """Return the number of operations between two times; an item may stand for several."""
    return sum(
        getattr(one, "count", 1)
        for one in operations
        if begin_s <= getattr(one, "at_s") < end_s  # noqa: B009 - of either kind
    )


if __name__ == "__main__":
    main()

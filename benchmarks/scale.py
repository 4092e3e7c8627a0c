"""What a group costs as it grows: the tables of ``docs/simulate.md``, and prices by store.

    .venv/bin/python benchmarks/scale.py [SIZE ...] [--format json]
    .venv/bin/python benchmarks/scale.py --by-store [SIZE ...]

A size is PARTITIONSxPROCESSORS; without any, all sizes are simulated: some minutes of work.
Every figure comes from the production processors, as many as are named, on virtual time. Each size
is simulated three times. First nothing happens for some minutes. Then: all start at once; after a
rest one joins; then one in ten crashes. Then: all start, and a few of them are replaced one after
the other, as in a rolling deploy. The first row of a size has the operations while nothing changes,
each of the others those of one event, until the group was balanced again.
With ``--by-store`` only the rest is simulated: the table of ``docs/stores.md``.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from benchmarks._rows import Row, options, print_progress, print_rows
from checkpointstores.tables._table import TRANSACTION_MAX
from eventproc import EventProcessorConfig
from eventproc._command.verbs.simulate import memory_account
from eventproc._simulation import History, PriceList, Script, parse_event, report_of, run_script
from eventproc._simulation.price import HOURS_PER_MONTH, PRICES
from eventproc._simulation.report import HOUR_S, pages_listed

SIZES: Final = ("4x2", "32x4", "256x32", "1000x100", "2500x250")
ROLLED_MAX: Final = 4
REST_S: Final = (20.0, 260.0)
"""Beginning and end of a time without changes, in which the steady rate is counted: as long as a
member record is old before its processor renews it, so each processor does that once."""

RENEWED_MAX: Final = {"blob": 1, "tables": TRANSACTION_MAX}
"""How many records one request renews; the other stores renew any number at once."""

JOIN_S, CRASH_S, END_S = 80, 110, 200
ROLL_S, ROLL_EACH_S = 20, 25


def measure(size: str) -> list[dict[str, Any]]:
    """Play one size."""
    partitions, processors = map(int, size.split("x"))
    crashing, rolled = max(processors // 10, 1), min(processors, ROLLED_MAX)
    changes = (f"join:1@{JOIN_S}", f"crash:{crashing}@{CRASH_S}")
    history = run_script(script(partitions, processors, END_S, *changes), memory_account)
    roll_end_s = ROLL_S + rolled * ROLL_EACH_S + 10
    rolling = script(partitions, processors, roll_end_s, f"roll:{rolled}@{ROLL_S}")
    rows = [
        at_rest(resting(partitions, processors)),
        *events_of(history),
        *events_of(run_script(rolling, memory_account))[1:],
    ]
    return [{"size": size, **row} for row in rows]


def script(partitions: int, processors: int, duration_s: int, *events: str) -> Script:
    return Script(
        partition_count=partitions,
        processor_count=processors,
        events=[parse_event(event) for event in events],
        duration=timedelta(seconds=duration_s),
        config=EventProcessorConfig(uses_store_thread=False),
        seed=7,
    )


def resting(partitions: int, processors: int) -> History:
    """Play a group in which nothing changes after its start."""
    return run_script(script(partitions, processors, round(REST_S[1])), memory_account)


def at_rest(history: History) -> dict[str, Any]:
    """Count the operations on the store while nothing changed."""
    begin_s, end_s = REST_S
    hours = (end_s - begin_s) / HOUR_S
    lists = count_between(history.listings, begin_s, end_s) / hours
    writes = count_between(history.writes, begin_s, end_s) / hours
    pages = pages_listed(history, begin_s, end_s, PriceList()) / hours
    return {
        "event": "at rest",
        "lists_per_hour": round(lists),
        "writes_per_hour": round(writes),
        "dollars_per_month": round(PriceList().of(writes=writes, pages=pages) * HOURS_PER_MONTH, 2),
    }


def by_store(size: str) -> list[dict[str, Any]]:
    """Count what a group at rest asks of each store in a month, and the price of that."""
    partitions, processors = map(int, size.split("x"))
    begin_s, end_s = REST_S
    history = resting(partitions, processors)
    months = (end_s - begin_s) / HOUR_S / HOURS_PER_MONTH
    counts = [write.count for write in history.writes if begin_s <= write.at_s < end_s]
    rows = []
    for store in ("blob", "tables", "postgres", "sqlite"):
        prices = PRICES.get(store, PriceList(writes=0, lists=0))
        pages = pages_listed(history, begin_s, end_s, prices)
        renewed_max = RENEWED_MAX.get(store, partitions)
        requests = pages + sum(-(-count // renewed_max) for count in counts)
        dollars = prices.of(writes=sum(counts), pages=pages) / months
        rows.append(
            {
                "size": size,
                "store": store,
                "requests_per_month": round(requests / months),
                "dollars_per_month": round(dollars, 2),
            }
        )
    return rows


def events_of(history: History) -> list[dict[str, Any]]:
    """Return a row for each event of the script."""
    rows = []
    for event in report_of(history).events:
        begin_s, took_s = event.at_seconds, event.seconds_to_balance
        end_s = history.duration_s if took_s is None else begin_s + took_s + 0.001
        happened = (history.listings, history.writes, history.checkpoint_operations)
        rows.append(
            {
                "event": event.event,
                "cycles": event.cycles_to_balance,
                "seconds": took_s,
                "moves": event.moves,
                "moves_least": event.moves_minimum,
                "conflicts": event.conflicts,
                "duplicates": event.duplicates,
                "operations": sum(count_between(each, begin_s, end_s) for each in happened),
            }
        )
    return rows


def count_between(operations: Iterable[object], begin_s: float, end_s: float) -> int:
    """Return the number of operations between two times; an item may stand for several."""
    return sum(
        getattr(one, "count", 1)
        for one in operations
        if begin_s <= getattr(one, "at_s") < end_s  # noqa: B009 - of either kind
    )


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("sizes", nargs="*", default=SIZES)
    parser.add_argument("--by-store", action="store_true", help="show prices at rest, by store")
    given = parser.parse_args()
    rows: list[Row] = []
    for size in SIZES[:1] if given.quick else given.sizes:
        print_progress(size)
        rows += by_store(size) if given.by_store else measure(size)
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()

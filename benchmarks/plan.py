"""How long one plan takes: of free partitions, a new member, a tenth crashed, and a balanced group.

    python benchmarks/plan.py                          # 10,000 partitions, 1,000 owners
    python benchmarks/plan.py --partitions 256 --owners 32

Each figure is the best of five, in milliseconds of processor time; ``balanced`` is the cost of each
poll of a balanced group. The plan is a pure function, so nothing else is measured.
"""

import time
from collections.abc import Mapping

from benchmarks._rows import Row, options, print_rows
from eventproc.core.placement.even import even_plan

REPEATS = 5


def best_ms(partition_ids: list[str], owned: Mapping[str, str], members: list[str]) -> float:
    """Return the shortest time of a few plans of this group."""
    took_s = []
    for _ in range(REPEATS):
        begun_s = time.process_time()
        even_plan(partition_ids, owned, members)
        took_s.append(time.process_time() - begun_s)
    return 1000 * min(took_s)


def main() -> None:
    """Measure and print a table."""
    parser = options(__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--owners", type=int, default=1_000)
    given = parser.parse_args()
    if given.quick:
        given.partitions, given.owners = 32, 4
    ids = [str(number) for number in range(given.partitions)]
    owners = [f"owner-{number}" for number in range(given.owners)]
    balanced = even_plan(ids, {}, owners)
    staying = owners[: -max(1, len(owners) // 10)]
    left = {p: owner for p, owner in balanced.items() if owner in set(staying)}
    figures = {
        "cold start": best_ms(ids, {}, owners),
        "one joins": best_ms(ids, balanced, [*owners, "new"]),
        "a tenth crashed": best_ms(ids, left, staying or ["last"]),
        "balanced": best_ms(ids, balanced, owners),
    }
    rows: list[Row] = [
        {
            "case": case,
            "partitions": given.partitions,
            "owners": given.owners,
            "cpu_ms": round(ms, 3),
        }
        for case, ms in figures.items()
    ]
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()

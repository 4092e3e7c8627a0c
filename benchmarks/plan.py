"""How long one plan takes: of nothing owned, one newcomer, a tenth crashed, and nothing to do.

    python benchmarks/plan.py                          # 10,000 partitions, 1,000 owners
    python benchmarks/plan.py --partitions 256 --owners 32

Each figure is the best of five, in milliseconds of processor time; ``quiet`` is what a settled
processor pays for each look. The plan is pure, so nothing else takes part.
"""

import time
from collections.abc import Mapping

from benchmarks._rows import Row, options, show
from eventproc.core.ownership.plan import plan

REPEATS = 5


def best_ms(partition_ids: list[str], owned: Mapping[str, str], members: list[str]) -> float:
    """The quickest of a few plans of this group."""
    took_s = []
    for _ in range(REPEATS):
        begun_s = time.process_time()
        plan(partition_ids, owned, members)
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
    settled = plan(ids, {}, owners)
    staying = owners[: -max(1, len(owners) // 10)]
    left = {p: owner for p, owner in settled.items() if owner in set(staying)}
    figures = {
        "cold start": best_ms(ids, {}, owners),
        "one newcomer": best_ms(ids, settled, [*owners, "newcomer"]),
        "a tenth crashed": best_ms(ids, left, staying or ["last"]),
        "quiet": best_ms(ids, settled, owners),
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
    show(rows, given.format)


if __name__ == "__main__":
    main()

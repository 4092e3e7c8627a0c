"""How long one plan takes: of free partitions, a new member, a tenth crashed, and a balanced group.

    python benchmarks/plan.py                          # 10,000 partitions, 1,000 owners
    python benchmarks/plan.py --partitions 256 --owners 32

There is a row for each placement and case. Each figure is the best of five, in milliseconds of
CPU time; ``balanced`` is the cost of each poll of a balanced group. It must stay below 100 ms
for 10,000 partitions and 1,000 owners. The plan is a pure function, so nothing else is measured.
"""

from benchmarks._rows import Row, options, print_rows
from eventproc._core.placement.even import Even
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import GroupState, MemberFacts, Placement
from eventproc._core.placement.plan import plan
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted
from eventproc.testing._placement_contract.contract import shortest_ms

REPEATS = 5
PLACEMENTS = (
    Even(),
    Weighted(),
    Ordinal(),
    Ordinal(literal=True),
    Ring(),
    Ring(bound=1.25),
    Ring(literal=True),
)


def group(partition_ids: list[str], owned: dict[str, str], owners: list[str]) -> GroupState:
    """Return a group whose members have ordinals in the order of *owners*."""
    return GroupState(
        resources=tuple(partition_ids),
        owner_by_resource=owned,
        members={owner: MemberFacts(ordinal=number) for number, owner in enumerate(owners)},
    )


def figures(partition_ids: list[str], owners: list[str], placement: Placement) -> dict[str, float]:
    """Return the shortest time for each case.

    Each repetition has other members, as a membership that changed has, so that nothing is
    remembered of them; ``balanced`` has the same ones, as in each poll of a group at rest.
    """
    balanced = plan(group(partition_ids, {}, owners), placement)
    starts, joins, crashes, polls = [], [], [], []
    for number in range(REPEATS):
        staying = [o for n, o in enumerate(owners) if n % 10 != number] or ["last"]
        left = {p: owner for p, owner in balanced.items() if owner in set(staying)}
        starts.append(group(partition_ids, {}, [f"{owner}-{number}" for owner in owners]))
        joins.append(group(partition_ids, balanced, [*owners, f"new-{number}"]))
        crashes.append(group(partition_ids, left, staying))
        polls.append(group(partition_ids, balanced, owners))
    return {
        "cold start": shortest_ms(starts, placement),
        "one joins": shortest_ms(joins, placement),
        "a tenth crashed": shortest_ms(crashes, placement),
        "balanced": shortest_ms(polls, placement),
    }


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
    rows: list[Row] = [
        {
            "placement": placement.name,
            "case": case,
            "partitions": given.partitions,
            "owners": given.owners,
            "cpu_ms": round(ms, 3),
        }
        for placement in PLACEMENTS
        for case, ms in figures(ids, owners, placement).items()
    ]
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()

"""How many rounds and moves a group needs, by its decisions alone: for sizes beyond a simulation.

    .venv/bin/python benchmarks/rounds.py [SIZE ...] [--format json]

A size is PARTITIONSxPROCESSORS. In each round every processor decides by ``balance.moves`` on
the same snapshot, and all their actions are carried out at once; if two processors claim the same
partition it is a conflict. There is no clock, no store and no handler. A test compares the results
with those of the full simulation, for sizes that both can run.
"""

import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from random import Random

from benchmarks._rows import Row, options, print_progress, print_rows
from eventproc.core.ownership import group as seen
from eventproc.core.ownership.balance import moves, shares
from eventproc.core.placement.even import moves_minimum
from eventproc.models import LoadBalancingStrategy, PartitionOwnership

SIZES = ("4x2", "32x4", "256x32", "1000x100", "2500x250", "10000x1000")
ROUNDS_MAX = 20
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of an event."""

    size: str
    event: str
    rounds: int
    """Rounds until no processor has anything left to do, without the last, empty one."""

    moves: int
    moves_least: int
    conflicts: int
    spread: int
    processor_seconds: float
    """For all decisions of all processors."""


@dataclass
class Group:
    """Owners and members of a group."""

    partition_ids: tuple[str, ...]
    members: set[str]
    owner_by_partition: dict[str, str] = field(default_factory=dict)
    """Owners that are alive or leaving; partitions of dead owners are missing."""

    conflicts: int = 0
    moves: int = 0

    def play_round(self) -> bool:
        """Play one round; return whether anything was done."""
        records = {
            p: PartitionOwnership(partition_id=p, owner_id=owner, etag="", last_modified=BEGIN)
            for p, owner in self.owner_by_partition.items()
        }
        held: dict[str, set[str]] = {}
        for partition_id, owner in self.owner_by_partition.items():
            held.setdefault(owner, set()).add(partition_id)
        targets: dict[str, list[str]] = {}
        standings = dict.fromkeys(held, seen.LEAVING)
        standings |= dict.fromkeys(self.members, seen.COOPERATIVE)
        for owner_id in sorted(standings):
            view = seen.Group(
                owner_id=owner_id,
                partition_ids=self.partition_ids,
                ownership_by_partition=records,
                as_of=BEGIN,
                live_owner_by_partition=self.owner_by_partition,
                standing_by_owner=standings,
                held=frozenset(held.get(owner_id, ())),
            )
            moved = moves(view, shares(view), LoadBalancingStrategy.COOPERATIVE)
            for claim in moved.claims:
                targets.setdefault(claim.partition_id, []).append(owner_id)
            for partition_id, target in moved.hand_overs.items():
                targets.setdefault(partition_id, []).append(target or "")
        for partition_id, owners in targets.items():
            self.conflicts += len(owners) - 1
            self.moves += 1
            self.owner_by_partition[partition_id] = owners[0]
        return bool(targets)

    @property
    def counts(self) -> Counter[str]:
        """How many partitions each member has."""
        counts = Counter(dict.fromkeys(self.members, 0))
        counts.update(self.owner_by_partition.values())
        return counts


def measure(size: str) -> list[Outcome]:
    """Play a cold start, one joiner, a crash of one in ten, and a leaver that is replaced."""
    partition_count, processor_count = map(int, size.split("x"))
    group = Group(
        partition_ids=tuple(str(number) for number in range(partition_count)),
        members={f"p{number:04}" for number in range(processor_count)},
    )
    outcomes = [play(group, size, "cold start")]
    group.members.add("joiner")
    outcomes.append(play(group, size, "one joins"))
    crashed = set(Random(7).sample(sorted(group.members), max(processor_count // 10, 1)))
    group.members -= crashed
    group.owner_by_partition = {
        p: owner for p, owner in group.owner_by_partition.items() if owner not in crashed
    }
    outcomes.append(play(group, size, f"{len(crashed)} crash"))
    group.members = group.members - {min(group.members)} | {"replacement"}
    outcomes.append(play(group, size, "one is replaced"))
    return outcomes


def play(group: Group, size: str, event: str) -> Outcome:
    """Play rounds until no processor has anything left to do."""
    staying = {p: o for p, o in group.owner_by_partition.items() if o in group.members}
    held = Counter(dict.fromkeys(group.members, 0))
    held.update(staying.values())
    least = len(group.partition_ids) - len(staying)
    least += moves_minimum(len(group.partition_ids), held)
    group.moves = group.conflicts = 0
    begun_s = time.process_time()
    rounds = 0
    while group.play_round():
        rounds += 1
        assert rounds < ROUNDS_MAX, "the group is never balanced"
    return Outcome(
        size=size,
        event=event,
        rounds=rounds,
        moves=group.moves,
        moves_least=least,
        conflicts=group.conflicts,
        spread=max(group.counts.values()) - min(group.counts.values()),
        processor_seconds=round(time.process_time() - begun_s, 2),
    )


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("sizes", nargs="*", default=SIZES)
    given = parser.parse_args()
    rows: list[Row] = []
    for size in SIZES[:1] if given.quick else given.sizes:
        print_progress(size)
        rows += [asdict(outcome) for outcome in measure(size)]
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()

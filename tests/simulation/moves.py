"""How often each partition changed its owner, and how many had to."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from eventproc.models import PartitionOwnership
from tests.simulation.actor import Actor
from tests.simulation.invariants import Invariants


@dataclass
class MoveInvariants(Invariants):
    """Counts how often each partition changed its owner."""

    moves: Counter[str] = field(default_factory=Counter)
    owner_by_partition: dict[str, str] = field(default_factory=dict)

    def owned(
        self,
        actor: Actor,
        before: PartitionOwnership | None,
        after: PartitionOwnership,
        *,
        was_live: bool,
    ) -> None:
        """Count hand-overs, claims and steals; a release is half a move."""
        super().owned(actor, before, after, was_live=was_live)
        partition_id, owner_id = after.partition_id, after.owner_id
        if owner_id is not None and self.owner_by_partition.get(partition_id) != owner_id:
            self.owner_by_partition[partition_id] = owner_id
            self.moves[partition_id] += 1


def fewest_moves(
    owner_by_partition: Mapping[str, str | None],
    staying: Mapping[str, int],
    newcomers: Collection[str],
) -> int:
    """Return how many partitions must move: those without an owner, and those above a share."""
    left = sum(owner_id not in staying for owner_id in owner_by_partition.values())
    minimum, extra_count = divmod(len(owner_by_partition), len(staying) + len(newcomers))
    over = [count - minimum for count in staying.values() if count > minimum]
    return left + sum(over) - min(extra_count, len(over))

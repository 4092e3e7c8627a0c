"""When a group is balanced, and how many moves that needs. All functions are pure."""

from collections import Counter
from collections.abc import Collection, Mapping

from eventproc.core.placement.even import even_plan, moves_minimum


def is_balanced(owner_by_partition: Mapping[str, str | None], live: Collection[str]) -> bool:
    """Whether live processors own all partitions, evenly and as the plan says."""
    owners = {p: o for p, o in owner_by_partition.items() if o is not None and o in live}
    if len(owners) < len(owner_by_partition) or not live:
        return False
    return even_plan(list(owners), owners, set(live)) == owners


def fewest_moves(owner_by_partition: Mapping[str, str | None], live: Collection[str]) -> int:
    """Return the fewest partitions that must change owners to balance the ``live`` processors."""
    counts = Counter(o for o in owner_by_partition.values() if o is not None and o in live)
    orphan_count = len(owner_by_partition) - counts.total()
    held = {owner_id: counts[owner_id] for owner_id in live}
    return orphan_count + moves_minimum(len(owner_by_partition), held)


def shares(owner_by_partition: Mapping[str, str | None]) -> str:
    """Return how many partitions each owner has: ``A 6, B 5, C 5``."""
    counts = Counter(owner_id or "unowned" for owner_id in owner_by_partition.values())
    return ", ".join(f"{owner_id} {count}" for owner_id, count in sorted(counts.items()))

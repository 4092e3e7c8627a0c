"""Which reserves take part? A rolling deploy should move each partition once.

Without this, a newcomer takes its share from everybody as soon as it is seen, and what the old
processor leaves behind a moment later goes to everybody again: nearly two moves for a partition.
So a newcomer of another generation waits in reserve, and takes part when something is vacant.

Rule 1: as many reserves take part as owners have gone. How many that are is told by what they had:
the reserves hold, or are to fill, as much as so many of those who stay.
Rule 2: who holds something takes part. So while a vacancy is filled, the same reserves fill it.
Rule 3: where nobody stays who could be replaced, all reserves take part.

Worked example. 64 partitions, eight old owners with 8 each, two newcomers in reserve. One of the
old ones leaves, and its 8 are vacant: that is one share. With one reserve there are eight owners
again, and each should have 8: the newcomer takes all that is vacant, and nobody else's changes.
"""

from collections import Counter
from collections.abc import Collection, Mapping

from eventproc.core.plan import rank


def taking_part(
    partition_count: int,
    owner_by_partition: Mapping[str, str],
    members: Collection[str],
    reserves: Collection[str],
) -> frozenset[str]:
    """Return who shall have a share.

    Args:
        partition_count: Of the hub.
        owner_by_partition: The live owner of each partition that has one.
        members: Everybody who is there and does not leave, reserves too.
        reserves: Those of them that wait for a vacancy.
    """
    held_count = Counter(owner_by_partition.values())
    idle = {reserve for reserve in reserves if not held_count[reserve]}
    staying_count = sum(held_count[member] for member in members if member not in reserves)
    stayer_count = sum(held_count[member] > 0 for member in members if member not in reserves)
    if not idle or not stayer_count:
        return frozenset(members)
    filling_count = len(set(reserves)) - len(idle)
    leaver_count = len(held_count.keys() - set(members))
    to_fill = partition_count - staying_count
    share = staying_count // stayer_count
    least, most = -(-to_fill // (share + 1)), to_fill // share
    wanted_count = min(max(filling_count, leaver_count, least), max(most, least))
    chosen = sorted(idle, key=lambda name: (rank(name), name))
    return frozenset(members) - frozenset(chosen[max(0, wanted_count - filling_count) :])

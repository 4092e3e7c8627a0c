"""Which standby processors get a share? A rolling deployment should move each partition once.

Without this, a new processor takes a share from all members as soon as it joins, and what an old
processor releases a moment later is shared by all members again: nearly two moves for each
partition. So a new processor of another deployment waits in standby until there is a vacancy.

Rule 1: as many standbys become active as owners have left. That number is computed from the
partitions that no remaining owner holds, divided by the share of a remaining owner.
Rule 2: a standby that holds partitions is active. So while a vacancy is filled, the same standbys
fill it.
Rule 3: if no other owner remains, all standbys are active.

Worked example. 64 partitions, eight old owners with 8 each, two new processors in standby. One of
the old ones leaves, and its 8 are vacant: that is one share. With one standby there are eight
owners again, and each should have 8: the standby takes all that is vacant, and no other partition
moves.
"""

from collections import Counter
from collections.abc import Collection, Mapping

from eventproc.core.placement.rank import rank


def active_members(
    partition_count: int,
    owner_by_partition: Mapping[str, str],
    members: Collection[str],
    standbys: Collection[str],
) -> frozenset[str]:
    """Return the members that get a share.

    Args:
        partition_count: How many partitions the hub has.
        owner_by_partition: The live owner of each partition that has one.
        members: All live members that are not leaving, with standbys.
        standbys: The members that wait for a vacancy.
    """
    held_count = Counter(owner_by_partition.values())
    idle = {standby for standby in standbys if not held_count[standby]}
    staying_count = sum(held_count[member] for member in members if member not in standbys)
    stayer_count = sum(held_count[member] > 0 for member in members if member not in standbys)
    if not idle or not stayer_count:
        return frozenset(members)
    filling_count = len(set(standbys)) - len(idle)
    leaver_count = len(held_count.keys() - set(members))
    to_fill = partition_count - staying_count
    share = staying_count // stayer_count
    least, most = -(-to_fill // (share + 1)), to_fill // share
    wanted_count = min(max(filling_count, leaver_count, least), max(most, least))
    chosen = sorted(idle, key=lambda name: (rank(name), name))
    return frozenset(members) - frozenset(chosen[max(0, wanted_count - filling_count) :])

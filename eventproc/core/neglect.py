"""What becomes of a partition that is free, and whose planned owner does not come for it?

The plan gives a share to everybody who is there, also to processors of other SDKs. These follow
rules of their own: one is content with less than its share, one never sees the partitions by which
a hub has grown, and any of them may hang. So their share may lie about, owned by nobody.

Rule: what is planned for a foreign owner, and has been free for longer than an owner may keep what
it should give away, is claimed by one of those who follow the plan, next on the ring to the
partition. It has more than its share then, until somebody comes for it.
"""

from collections.abc import Collection, Mapping

from eventproc.core.plan import plan


def free_since_s(
    known: Mapping[str, float],
    planned: Mapping[str, str],
    live_owner_by_partition: Mapping[str, str],
    me: str,
    now_s: float,
) -> dict[str, float]:
    """Note since when each partition that is planned for somebody else has had no owner."""
    return {
        partition_id: known.get(partition_id, now_s)
        for partition_id, owner_id in planned.items()
        if owner_id != me and partition_id not in live_owner_by_partition
    }


def heirs(
    partition_ids: Collection[str],
    live_owner_by_partition: Mapping[str, str],
    followers: Collection[str],
) -> Mapping[str, str]:
    """Return who shall have what no foreign owner has, if all of it is neglected.

    The plan of those who follow it, among themselves: so it goes to who has least.
    """
    open_to = {None, *followers}
    left = [p for p in partition_ids if live_owner_by_partition.get(p) in open_to]
    live = {p: live_owner_by_partition[p] for p in left if p in live_owner_by_partition}
    return plan(left, live, followers)

"""What becomes of a partition whose planned owner is a foreign one, and does not come for it?

The plan gives a share to everybody who is there, also to processors of other SDKs. These follow
rules of their own: one is content with less than its share, one never sees the partitions by which
a hub has grown, and any of them may hang. So their share may lie about, owned by nobody, or stay
with one of ours that has more than the others.

Rule: what a foreign owner has not come for, for longer than an owner may keep what it should give
away, is shared by those who follow the plan, as if no foreign owner were there. They have more than
their share then, evenly, until somebody comes for it.
"""

from collections.abc import Collection, Mapping

from eventproc.core.plan import plan


def awaited(
    planned: Mapping[str, str],
    live_owner_by_partition: Mapping[str, str],
    foreign: Collection[str],
) -> frozenset[str]:
    """Return what is planned for foreign owners that have not come for it."""
    if not foreign:
        return frozenset()  # As it mostly is.
    return frozenset(
        partition_id
        for partition_id, owner_id in planned.items()
        if owner_id in foreign and live_owner_by_partition.get(partition_id) != owner_id
    )


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

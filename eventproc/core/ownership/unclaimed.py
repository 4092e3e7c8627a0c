"""Partitions that an Azure SDK processor was planned to own but has not claimed in time.

The plan gives a share to all members, also to foreign ones. These follow rules of their own: one
SDK claims less than its share, another never sees partitions that were added to the hub,
and any processor may hang. So partitions of their share may stay without an owner, or stay with one
of our processors that then has more than the others.

Rule: a partition that a foreign member has not claimed for longer than ``handoff_timeout`` is
assigned to a member that follows the plan, as if there were no foreign members. These members
share such partitions evenly, until a foreign member steals one.
"""

from collections.abc import Collection, Mapping

from eventproc.core.placement.even import even_plan


def awaiting_claim(
    planned: Mapping[str, str],
    live_owner_by_partition: Mapping[str, str],
    foreign: Collection[str],
) -> frozenset[str]:
    """Return the partitions planned for foreign members that these do not own."""
    if not foreign:
        return frozenset()  # The common case.
    return frozenset(
        partition_id
        for partition_id, owner_id in planned.items()
        if owner_id in foreign and live_owner_by_partition.get(partition_id) != owner_id
    )


def fallback_owners(
    partition_ids: Collection[str],
    live_owner_by_partition: Mapping[str, str],
    followers: Collection[str],
) -> Mapping[str, str]:
    """Return owners for all partitions that no foreign member owns, as if they claimed no more.

    It is the even plan for the followers alone, so the followers with the fewest partitions get
    more.
    """
    open_to = {None, *followers}
    left = [p for p in partition_ids if live_owner_by_partition.get(p) in open_to]
    live = {p: live_owner_by_partition[p] for p in left if p in live_owner_by_partition}
    return even_plan(left, live, followers)

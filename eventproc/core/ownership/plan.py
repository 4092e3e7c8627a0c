"""The plan: which member should own each partition. Every processor computes the same plan.

Rule 1: the plan is a function of the records in the store, which all processors read. The same
snapshot gives the same plan on every processor, so claims do not collide and the group needs no
coordinator.
Rule 2: it moves the fewest partitions that balance allows. An owner keeps what it holds up to its
quota; only partitions without an owner, and surplus, change hands.
Rule 3: it does not change while it is carried out. After any part of it has been done, in any
order, the plan of what is left is the rest of the same plan. This has two reasons. The extra
places go to owners that hold more than the minimum, whatever the exact counts. And each free
partition, in a fixed order, takes the next owner clockwise on a ring that still has a place: a
place that was filled and the partition that filled it leave the rest of the walk as it was.

Worked example. 18 partitions, owners A, B, C with 6 each, and D joins. 18 div 4 is 4, rest 2. All
three of A, B, C hold more than 4, so the two extra places go to two of them, say A and B by their
rank. Quotas: A 5, B 5, C 4, D 4. A and B give one each and C two, all to D: four moves, which is
the minimum. The rule "steal only from an owner with more than P/N + 1" stops at 5, 5, 5, 3.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b


@lru_cache(maxsize=1 << 16)
def rank(name: str) -> int:
    """Hash a name to a number: the same on every machine, and unrelated to the name's order."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest())


def quotas(
    partition_count: int, held_count_by_owner: Mapping[str, int], foreign: Collection[str] = ()
) -> dict[str, int]:
    """How many partitions each owner should have: all equal, or one apart.

    The extra places go first to owners that already hold more than the minimum. Among these a
    foreign owner comes first, because its surplus could only be stolen; among the others it comes
    last, because no other member can make it claim one more.
    """
    if not held_count_by_owner:
        return {}
    minimum, extra_count = divmod(partition_count, len(held_count_by_owner))

    def precedence(owner_id: str) -> tuple[bool, bool, int, str]:
        holds_extra = held_count_by_owner[owner_id] > minimum
        return (not holds_extra, (owner_id in foreign) != holds_extra, rank(owner_id), owner_id)

    extra = set(sorted(held_count_by_owner, key=precedence)[:extra_count])
    return {owner_id: minimum + (owner_id in extra) for owner_id in held_count_by_owner}


def plan(
    partition_ids: Collection[str],
    owner_by_partition: Mapping[str, str],
    members: Collection[str],
    *,
    foreign: Collection[str] = (),
) -> dict[str, str]:
    """Return the owner that each partition should have; empty if there are no members.

    Args:
        partition_ids: All partitions of the hub.
        owner_by_partition: The live owner of each partition that has one. An owner that is not a
            member (it leaves) loses all it holds.
        members: The members that get a share, whether they own partitions or not.
        foreign: The members that do not follow this plan.
    """
    if _is_balanced(partition_ids, owner_by_partition, members):
        return dict(owner_by_partition)
    held_by_member: dict[str, list[str]] = {member: [] for member in members}
    free: list[str] = []
    for partition_id in partition_ids:
        held_by_member.get(owner_by_partition.get(partition_id, ""), free).append(partition_id)
    if not held_by_member:
        return {}
    counts = {member: len(held) for member, held in held_by_member.items()}
    quota_by_member = quotas(len(partition_ids), counts, foreign)
    planned: dict[str, str] = {}
    for member, held in held_by_member.items():
        quota = quota_by_member[member]
        if len(held) > quota:
            held.sort(key=_precedence)
            free.extend(held[quota:])
        planned.update((partition_id, member) for partition_id in held[:quota])
    places = {member: quota_by_member[member] - counts[member] for member in held_by_member}
    planned.update(_deal(free, places))
    return planned


def _is_balanced(
    partition_ids: Collection[str], owner_by_partition: Mapping[str, str], members: Collection[str]
) -> bool:
    """Whether members own all partitions evenly. The common case: the plan changes nothing."""
    if len(owner_by_partition) != len(partition_ids):
        return False
    counts = dict.fromkeys(members, 0) | Counter(owner_by_partition.values())
    return (
        len(counts) == len(members)
        and owner_by_partition.keys() == set(partition_ids)
        and max(counts.values()) - min(counts.values()) <= 1
    )


def _precedence(name: str) -> tuple[int, str]:
    """The order in which partitions are kept and assigned, and of the owners on the ring."""
    return rank(name), name


def _deal(free: Iterable[str], places: Mapping[str, int]) -> dict[str, str]:
    """Assign each free partition to the next owner clockwise that still has a place.

    ``following`` points from an owner that is full to the next one on the ring. Each walk shortens
    these paths, so that full owners are not walked over again for each partition. There are
    exactly as many places as free partitions, so the walk always ends.
    """
    ring = sorted((member for member, count in places.items() if count > 0), key=_precedence)
    points = [rank(member) for member in ring]
    left = [places[member] for member in ring]
    following = list(range(len(ring)))

    def open_at(index: int) -> int:
        passed = []
        while following[index] != index:
            passed.append(index)
            index = following[index]
        for other in passed:
            following[other] = index
        return index

    dealt = {}
    for partition_id in sorted(free, key=_precedence):
        index = open_at(bisect_left(points, rank(partition_id)) % len(ring))
        dealt[partition_id] = ring[index]
        left[index] -= 1
        if left[index] == 0:
            following[index] = (index + 1) % len(ring)
    return dealt


def moves_minimum(
    partition_count: int, held_count_by_owner: Mapping[str, int], foreign: Collection[str] = ()
) -> int:
    """The fewest partitions that must leave an owner to balance this group."""
    quota_by_owner = quotas(partition_count, held_count_by_owner, foreign)
    return sum((Counter(held_count_by_owner) - Counter(quota_by_owner)).values())

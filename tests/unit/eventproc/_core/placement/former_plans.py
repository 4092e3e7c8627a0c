"""Digests of plans of drawn groups: those of ``Even`` must stay as they were.

``even_plans.txt`` has one for each hundred groups, computed by the code that was the only plan
before there were placements. It must never be written again: processors of all versions must
compute the same plan.
"""

from hashlib import blake2b
from pathlib import Path
from random import Random

from tests.unit.eventproc._core.ownership.groups import Group

DIGESTS = Path(__file__).with_name("even_plans.txt")
GROUPS_PER_DIGEST = 100
OWNERS = ("pod-0", "pod-1", "pod-2", "worker-a", "worker-b", "ü", "x" * 40, "pod-10", "7")


def drawn_group(number: int) -> Group:
    """Draw the group with this number; ``random()`` is the same in every version of Python."""
    random = Random(number).random

    def below(limit: int) -> int:
        return int(random() * limit)

    partition_ids = tuple(str(p) for p in range(1 + below(64 if number % 5 else 300)))
    names = [*OWNERS[below(4) :], *(f"owner-{n}" for n in range(below(4) * below(12)))]
    members = [name for name in names if random() < 0.7]
    possible = [None, *names] if number % 3 else [*names[:3], *members]
    owners = [possible[below(len(possible))] for _ in partition_ids]
    if number % 7 == 0 and members:
        owners = [members[p % len(members)] for p in range(len(partition_ids))]
    owned = {p: owner for p, owner in zip(partition_ids, owners, strict=True) if owner is not None}
    return Group(
        partition_ids=partition_ids,
        owner_by_partition=owned,
        members=frozenset(members),
        foreign=frozenset(m for m in members if number % 2 and random() < 0.3),
    )


def digest(plan, numbers) -> str:
    """Return the digest of the plans of these groups; *plan* has the arguments of ``even_plan``."""
    found = blake2b(digest_size=8)
    for number in numbers:
        group = drawn_group(number)
        planned = plan(
            group.partition_ids,
            group.owner_by_partition,
            sorted(group.members),
            foreign=sorted(group.foreign),
        )
        found.update(repr(sorted(planned.items())).encode())
    return found.hexdigest()
